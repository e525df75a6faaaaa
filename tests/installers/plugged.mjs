// Drives memd's plugin as its client does: the client's name and the plugin's file are given. Prints what the client was handed.
const [client, file] = process.argv.slice(2)
const plugin = await import(file)
const shown = []
const show = (what, value) => shown.push([what, value ?? null])

async function opencode() {
  const session = { get: async () => ({ data: { directory: "/p" } }), messages: async () => ({ data: [] }) }
  const hooks = await plugin.Memd({ client: { session }, directory: "/p" })
  const config = { mcp: { other: {} } }
  await hooks.config(config)
  show("servers", Object.keys(config.mcp))
  const given = { sessionID: "ses_1" }
  const message = { message: { id: "msg_1" }, parts: [{ id: "prt_1", sessionID: "ses_1", messageID: "msg_1", type: "text", text: '"Mend it."' }] }
  await hooks["chat.message"](given, message)
  show("told", message.parts.slice(1).map((part) => [part.text, part.synthetic]))
  const part = (fields) => hooks.event({ event: { type: "message.part.updated", properties: { part: { sessionID: "ses_1", ...fields } } } })
  await part({ id: "prt_2", type: "text", text: "I look.", time: { end: 1 } })
  const call = { tool: "bash", sessionID: "ses_1", callID: "1" }
  await part({ id: "prt_3", type: "tool", tool: "bash", callID: "1", state: { status: "pending" } })
  for (const command of ["ls", "forbidden"]) {
    try {
      await hooks["tool.execute.before"](call, { args: { command } })
    } catch (error) {
      show("refused", error.message)
    }
  }
  const output = { output: "gone", metadata: { exit: 2 } }
  await hooks["tool.execute.after"]({ ...call, args: { command: "ls" } }, output)
  show("output", output.output)
  await hooks["tool.execute.after"]({ tool: "memd_mem_search", sessionID: "ses_1", callID: "2", args: {} }, { output: "" })
  await part({ id: "prt_4", type: "tool", tool: "read", callID: "3", state: { status: "error", input: { filePath: "/p/a" }, error: "no file" } })
  await part({ id: "prt_5", type: "text", text: "Done.", time: { end: 2 } })
  await hooks.event({ event: { type: "session.idle", properties: given } })
  await hooks.dispose()
}

async function pi() {
  const handlers = {}
  const servers = []
  plugin.default({ on: (event, handle) => (handlers[event] = handle), registerMcpServer: (name, { exposure }) => servers.push(name, exposure) })
  show("servers", servers)
  const ctx = { cwd: "/p", sessionManager: { getSessionId: () => "ses_1", getEntries: () => [] } }
  await handlers.session_start({ reason: "startup" }, ctx)
  await handlers.input({ text: "Mend it.", source: "interactive" }, ctx)
  const begun = await handlers.before_agent_start({ messageType: "user", prompt: "Mend it." }, ctx)
  show("told", [[begun.message.content, begun.message.display === false]])
  await handlers.turn_end({ message: { content: [{ type: "text", text: "I look." }] }, toolResults: [{}], messageEntryId: "prt_2" }, ctx)
  for (const command of ["ls", "forbidden"]) {
    const answer = await handlers.tool_call({ toolName: "bash", toolCallId: "prt_3", input: { command } }, ctx)
    if (answer?.block) show("refused", answer.reason)
  }
  const failed = { toolName: "bash", toolCallId: "prt_3", input: { command: "ls" }, content: [{ type: "text", text: "gone" }], isError: true }
  const patched = await handlers.tool_result({ ...failed, structuredContent: { exit_code: 2, output: "gone" } }, ctx)
  show("output", patched.content.map((one) => one.text).join("\n\n"))
  await handlers.tool_result({ toolName: "mcp__memd__mem_search", toolCallId: "2", input: {}, content: [] }, ctx)
  await handlers.tool_result({ toolName: "read", toolCallId: "prt_4", input: { path: "/p/a" }, content: [{ type: "text", text: "no file" }], isError: true }, ctx)
  await handlers.turn_end({ message: { content: [{ type: "text", text: "Done." }] }, toolResults: [], messageEntryId: "prt_5" }, ctx)
  await handlers.agent_settled({ aborted: false }, ctx)
  await handlers.input({ text: "Go on by yourself.", source: "extension" }, ctx)
  await handlers.before_agent_start({ messageType: "user", prompt: "Go on by yourself." }, ctx)
  await handlers.session_shutdown({ reason: "quit" }, ctx)
}

await { opencode, pi }[client]()
console.log(JSON.stringify(shown))
