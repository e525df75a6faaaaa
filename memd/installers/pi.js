// Pi: what memd has to say goes into the session as a message of its own, which its file keeps apart from the user's.
import { randomUUID } from "node:crypto"

const SOURCES = { startup: "startup", new: "clear", resume: "resume", fork: "fork" }
const getText = (content) =>
  typeof content === "string" ? content : (content ?? []).filter((one) => one.type === "text").map((one) => one.text).join("\n")

export default function (pi) {
  let start, typed, turn, said
  const warnings = new Map() // call → what is told of it before it runs

  const send = (ctx, hook_event_name, fields) =>
    tell({
      session_id: ctx.sessionManager.getSessionId(),
      hook_event_name,
      cwd: ctx.cwd,
      ...(turn && { prompt_id: turn }),
      ...fields,
    })

  const sendPrompt = (ctx, prompt, source) => {
    turn = randomUUID()
    // A person types, or writes to the API; what an extension sends is not the user's word.
    return send(ctx, "UserPromptSubmit", { prompt, ...(source === "extension" && { source }) })
  }

  const on = (event, handle) => pi.on(event, quietly(handle))

  pi.registerMcpServer?.("memd", { ...MEMD.server, exposure: "direct" })

  on("session_start", async ({ reason }, ctx) => {
    if (reason === "reload") return
    const isOld = ctx.sessionManager.getEntries().some((one) => one.type === "message")
    const source = reason === "startup" && isOld ? "resume" : SOURCES[reason]
    start = send(ctx, "SessionStart", { source }) // not waited for: the first prompt does
  })
  on("input", async ({ text, source, streamingBehavior }, ctx) => {
    typed = { text, source }
    if (streamingBehavior) await sendPrompt(ctx, text, source) // no run begins with it
  })
  on("before_agent_start", async ({ messageType, prompt }, ctx) => {
    const { text = "", source } = typed ?? {}
    typed = undefined
    // Of a skill or a template the user typed the name, not the words.
    const told = messageType === "custom" ? undefined : sendPrompt(ctx, text.startsWith("/") ? text : prompt, source)
    const content = join(await start, await told)
    start = undefined
    if (content) return { message: { customType: "memd", content, display: false } }
  })
  on("tool_call", async ({ toolName, toolCallId, input }, ctx) => {
    if (!isWatched(ctx.sessionManager.getSessionId())) return
    const { context, refusal } = await send(ctx, "PreToolUse", { tool_name: toolName, tool_input: input })
    if (refusal) return { block: true, reason: refusal }
    if (context) warnings.set(toolCallId, { context })
  })
  on("tool_result", async ({ toolName, toolCallId, input, content, structuredContent, isError }, ctx) => {
    if (isOwnTool(toolName)) return
    const text = getText(content)
    const code = structuredContent?.exit_code
    const error = code ? `Exit code ${code}\n${structuredContent.output ?? text}` : text
    const told = isError ? { error } : { tool_response: toolName === "bash" ? { stdout: text } : text }
    const fields = { tool_name: toolName, tool_input: input, tool_use_id: toolCallId, ...told }
    const answer = await send(ctx, isError ? "PostToolUseFailure" : "PostToolUse", fields)
    const added = join(warnings.get(toolCallId), answer)
    warnings.delete(toolCallId)
    if (added) return { content: [...content, { type: "text", text: added }], structuredContent }
  })
  on("turn_end", async ({ message, toolResults, messageEntryId }, ctx) => {
    const text = getText(message.content)
    said = undefined
    if (text && toolResults.length) await send(ctx, "AgentText", { text, uuid: messageEntryId })
    else if (text) said = { text, id: messageEntryId }
  })
  on("agent_settled", async ({ aborted }, ctx) => {
    const last = aborted ? undefined : said
    said = undefined
    await send(ctx, "Stop", { last_assistant_message: last?.text ?? null, uuid: last?.id })
    turn = undefined
  })
  on("session_compact", async ({ compactionEntry, reason }, ctx) => {
    const fields = { compact_summary: compactionEntry.summary, uuid: compactionEntry.id }
    await send(ctx, "PostCompact", { trigger: reason === "manual" ? "manual" : "auto", ...fields })
    start = send(ctx, "SessionStart", { source: "compact" })
  })
  on("session_shutdown", async ({ reason }, ctx) => {
    if (reason !== "reload") await send(ctx, "SessionEnd", { reason: "other" })
  })
}
