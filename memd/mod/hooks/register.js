// An optional mod of Claude Code: a line with what memd told this session and learned from it. Tried with 2.1.332, where mods need
// no account. It rejects nothing: what it starts has the client behind it like what an agent starts, and memd takes a rejection
// from a person alone.
const TIMEOUT_MS = 5000

// memd leaves a note where it is: a line with its interpreter, and one with its package.
async function findMemd($) {
  const home = await $.env.get('HOME')
  const own = await $.env.get('MEMD_HOME')
  const state = (await $.env.get('XDG_STATE_HOME')) || `${home}/.local/state`
  for (const note of [own && `${own}/state/installed`, `${state}/memd/installed`, `${home}/Library/Logs/memd/installed`]) {
    try {
      const [python] = (await $.fs.read(note)).split('\n')
      if (python) return [python, '-P', '-m', 'memd']
    } catch {}
  }
  return ['memd']
}

async function read($) {
  try {
    const argv = [...(await findMemd($)), 'injected', await $.session.id(), '--json']
    const ran = await $.process.run(argv, { timeoutMs: TIMEOUT_MS })
    return ran.exitCode === 0 ? JSON.parse(ran.stdout) : undefined
  } catch {
    return undefined
  }
}

async function show($) {
  const found = await read($)
  const told = (found?.injections ?? []).filter((one) => !one.held).length
  $.ui.status(found && `memd: told ${told}, learned ${found.learned}`)
}

export const register = (on) => {
  on('session.start', async ($, e, next) => {
    await $.command.register({ name: 'memd-told', description: 'List what memd told this session' })
    return next(e)
  })
  on('turn.complete', async ($, e, next) => {
    void show($)
    return next(e)
  })
  on('command.run', { command: 'memd-told' }, async ($) => {
    const lines = ((await read($))?.injections ?? []).map((one) => `#${one.id} ${one.title} (${one.outcome ?? one.reason})`)
    return { text: lines.join('\n') || 'memd has told this session nothing.' }
  })
}
