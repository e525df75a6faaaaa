import { spawn } from "node:child_process"
import { existsSync } from "node:fs"

// Runs memd's hook, as it runs for every client: with the payload of one event in the words of Claude Code's hooks. One after
// the other, so that memd hears of a turn in its order. Whatever goes wrong, nothing is told and the agent goes on.
const HOOK_MS = 4000
let queue = Promise.resolve()

function tell(payload) {
  const told = queue.then(() => runHook(payload))
  queue = told
  return told
}

function runHook(payload) {
  return new Promise((resolve) => {
    let printed = ""
    const event = `${MEMD.client}:${payload.hook_event_name}`
    const hook = spawn("/bin/sh", [MEMD.launcher, event], { stdio: ["pipe", "pipe", "ignore"] })
    const late = setTimeout(() => resolve({}), HOOK_MS)
    hook.stdout.setEncoding("utf8")
    hook.stdout.on("data", (text) => (printed += text))
    hook.stdin.on("error", () => {})
    hook.on("error", () => resolve({}))
    hook.on("close", () => {
      clearTimeout(late)
      resolve(readAnswer(printed))
    })
    hook.stdin.end(JSON.stringify(payload))
  })
}

function readAnswer(printed) {
  try {
    const said = JSON.parse(printed).hookSpecificOutput
    const refusal = said.permissionDecision === "deny" ? said.permissionDecisionReason : undefined
    return { context: said.additionalContext, refusal }
  } catch {
    return {}
  }
}

// Whether the session has a rule about some call: only then is memd asked before one.
const isWatched = (session) => existsSync(`${MEMD.watch}/${session}`)

const isOwnTool = (name) => /(?:^|[_.:/-])mem_[a-z]+$/.test(name)

const join = (...answers) => answers.map((one) => one?.context).filter(Boolean).join("\n\n")

// Keeps a failure of memd's own from the client.
const quietly = (handle) => async (...given) => {
  try {
    return await handle(...given)
  } catch (error) {
    if (error?.isRefusal) throw error
  }
}
