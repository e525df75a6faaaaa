// OpenCode 1: its parts have ids that its database has, too, so an import finds again what was told here.
const EXIT_FAILED = (metadata) => typeof metadata?.exit === "number" && metadata.exit !== 0

export const Memd = async ({ client, directory }) => {
  const sessions = new Map()
  const parts = new Map() // call → the id of its part
  const warnings = new Map() // call → what is told of it before it runs
  const refused = new Set()

  async function open(id) {
    if (sessions.has(id)) return sessions.get(id)
    const path = { id }
    const [found, past] = await Promise.all([
      client.session.get({ path }).catch(() => ({})),
      client.session.messages({ path, query: { limit: 1 } }).catch(() => ({})),
    ])
    const info = found.data ?? {}
    const base = { session_id: info.parentID ?? id, cwd: info.directory ?? directory }
    if (info.parentID) Object.assign(base, { agent_id: id, agent_type: "" })
    const session = { base, isAgent: Boolean(info.parentID), source: past.data?.length ? "resume" : "startup" }
    sessions.set(id, session)
    return session
  }

  const send = (session, hook_event_name, fields) =>
    tell({ ...session.base, hook_event_name, ...(session.turn && { prompt_id: session.turn }), ...fields })

  function describe(tool, given, sessionID, id) {
    const part = parts.get(sessionID + id)
    parts.delete(sessionID + id)
    return { tool_name: tool, tool_input: given, tool_use_id: part ?? id }
  }

  // What the agent said before it went on.
  function pass(session) {
    if (session.said && !session.isAgent) send(session, "AgentText", { text: session.said.text, uuid: session.said.id })
    session.said = undefined
  }

  async function readPart(part) {
    const session = sessions.get(part.sessionID)
    if (!session) return
    if (part.type === "text" && part.time?.end) {
      pass(session)
      session.said = part
    } else if (part.type === "tool") {
      const { status } = part.state
      if (status === "pending" || status === "running") parts.set(part.sessionID + part.callID, part.id)
      if (status === "pending") pass(session)
      if (status === "error" && !isOwnTool(part.tool) && !refused.delete(part.callID)) {
        const fields = describe(part.tool, part.state.input, part.sessionID, part.callID)
        await send(session, "PostToolUseFailure", { ...fields, error: part.state.error })
      }
    }
  }

  async function end(session) {
    const { said, turn } = session
    if (!turn) return
    const stopped = send(session, session.isAgent ? "SubagentStop" : "Stop", {
      last_assistant_message: said?.text ?? null,
      uuid: said?.id,
    })
    session.said = session.turn = undefined
    await stopped
  }

  async function readCompaction(id) {
    const session = await open(id)
    const found = await client.session.messages({ path: { id } })
    const last = found.data.findLast((one) => one.info.summary === true)
    const texts = (last?.parts ?? []).filter((part) => part.type === "text").map((part) => part.text)
    session.said = undefined
    session.source = "compact"
    if (last) await send(session, "PostCompact", { trigger: "auto", compact_summary: texts.join("\n"), uuid: last.info.id })
  }

  return {
    config: async (config) => {
      config.mcp = { memd: { type: "local", enabled: true, ...MEMD.server }, ...config.mcp }
    },
    "chat.message": quietly(async (input, output) => {
      const session = await open(input.sessionID)
      const typed = output.parts.filter((part) => part.type === "text" && !part.synthetic && !part.ignored)
      // `opencode run` puts its argument between quotes.
      const prompt = typed.map((part) => part.text).join("\n").trim().replace(/^"([^"]*)"$/, "$1")
      if (!prompt) return
      const { source } = session
      session.source = undefined
      session.turn = output.message.id
      let told
      if (session.isAgent) {
        session.base.agent_type = input.agent ?? output.message.agent ?? ""
        told = source && join(await send(session, "SubagentStart", { prompt }))
      } else {
        const start = source && tell({ ...session.base, hook_event_name: "SessionStart", source })
        const said = send(session, "UserPromptSubmit", { prompt })
        told = join(await start, await said)
      }
      if (!told) return
      const { id, sessionID, messageID } = output.parts.at(-1)
      output.parts.push({ id: `${id}m`, sessionID, messageID, type: "text", text: told, synthetic: true })
    }),
    "tool.execute.before": quietly(async ({ tool, sessionID, callID }, { args }) => {
      const session = sessions.get(sessionID)
      if (!session || !isWatched(session.base.session_id)) return
      const { context, refusal } = await send(session, "PreToolUse", { tool_name: tool, tool_input: args })
      if (refusal) {
        refused.add(callID)
        throw Object.assign(new Error(refusal), { isRefusal: true })
      }
      if (context) warnings.set(callID, { context })
    }),
    "tool.execute.after": quietly(async ({ tool, sessionID, callID, args }, output) => {
      const session = sessions.get(sessionID)
      if (!session || isOwnTool(tool)) return
      const text = output.output ?? (output.content ?? []).map((one) => one.text ?? "").join("\n")
      const hasFailed = EXIT_FAILED(output.metadata)
      const told = hasFailed
        ? { error: `Exit code ${output.metadata.exit}\n${text}` }
        : { tool_response: tool === "bash" ? { stdout: text } : text }
      const event = hasFailed ? "PostToolUseFailure" : "PostToolUse"
      const answer = await send(session, event, { ...describe(tool, args, sessionID, callID), ...told })
      const added = join(warnings.get(callID), answer)
      warnings.delete(callID)
      if (added && typeof output.output === "string") output.output += `\n\n${added}`
      else if (added) output.content?.push({ type: "text", text: added })
    }),
    event: quietly(async ({ event }) => {
      const { part, sessionID } = event.properties ?? {}
      const session = sessions.get(sessionID)
      if (event.type === "message.part.updated") await readPart(part)
      else if (event.type === "session.compacted") await readCompaction(sessionID)
      else if (event.type === "session.error" && session) session.said = undefined
      else if (event.type === "session.idle" && session) await end(session)
    }),
    dispose: quietly(async () => {
      const own = [...sessions.values()].filter((one) => !one.isAgent)
      await Promise.all(own.map((one) => send(one, "SessionEnd", { reason: "other" })))
    }),
  }
}
