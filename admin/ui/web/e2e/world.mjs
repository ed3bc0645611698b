// A real server with the test service and scripted work, and a browser.

import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { chromium } from 'playwright-core'

const serverBinary = process.env.PLATFORM_SERVER
const serviceBinary = process.env.UI_SERVICE

const given = new Set() // each port is given once: tests run side by side

/** Ports that are free now. */
export async function freePorts(n) {
  const servers = await Promise.all(Array.from({ length: n }, () => new Promise((resolve, reject) => {
    const s = createServer()
    s.once('error', reject)
    s.listen(0, '127.0.0.1', () => resolve(s))
  })))
  const ports = servers.map((s) => s.address().port)
  await Promise.all(servers.map((s) => new Promise((resolve) => s.close(resolve))))
  if (ports.some((port) => given.has(port))) return freePorts(n)
  for (const port of ports) given.add(port)
  return ports
}

/** Repeats until there is a result. */
export async function until(what, check, timeout = 120_000) {
  const end = Date.now() + timeout
  let last
  for (;;) {
    try {
      const result = await check()
      if (result) return result
    } catch (err) {
      last = err
    }
    if (Date.now() > end) throw new Error(`${what} did not happen within ${timeout / 1000} s${last ? `: ${last.message}` : ''}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

const listens = (port) => new Promise((resolve) => {
  const socket = connect(port, '127.0.0.1', () => resolve(true))
  socket.once('error', () => resolve(false))
  socket.once('connect', () => socket.destroy())
})

export class World {
  #processes = []
  #nodes = []
  dir = mkdtempSync(path.join(tmpdir(), 'ui-test-'))

  /** Starts servers that form a cluster, and the test service; env may be a function of `admin`. `admin` and `ingress` are those of the first server. */
  static async start({ nodes = 1, flowControl = false, token = '', env = {} } = {}) {
    const w = new World()
    w.token = token
    const [service, ...ports] = await freePorts(1 + 3 * nodes)
    const members = ports.slice(0, nodes).map((port) => `http://127.0.0.1:${port}`)
    for (let i = 0; i < nodes; i++) {
      const [node, ingress, admin] = [ports[i], ports[nodes + i], ports[2 * nodes + i]]
      w.#nodes.push({
        name: `n${i + 1}`, admin: `http://127.0.0.1:${admin}`, ingress: `http://127.0.0.1:${ingress}`,
        env: {
          ...Object.fromEntries(Object.entries(process.env).filter(([k]) => !k.startsWith('PLATFORM_'))),
          PLATFORM_BASE_DIR: w.dir, PLATFORM_NODE_NAME: `n${i + 1}`, PLATFORM_BIND_IP: '127.0.0.1', PLATFORM_BIND_PORT: String(node),
          PLATFORM_INGRESS__BIND_PORT: String(ingress), PLATFORM_ADMIN__BIND_PORT: String(admin), PLATFORM_DEFAULT_NUM_PARTITIONS: '4',
          PLATFORM_WORKER__INVOKER__INACTIVITY_TIMEOUT: '1s', // what waits suspends soon
          ...(nodes > 1 ? { PLATFORM_BOOTSTRAP_EXPECT: String(nodes), PLATFORM_METADATA_CLIENT__ADDRESSES: JSON.stringify(members) } : {}),
          ...(flowControl ? { PLATFORM_EXPERIMENTAL_ENABLE_PROTOCOL_V7: 'true', PLATFORM_EXPERIMENTAL_ENABLE_VQUEUES: 'true' } : {}),
          ...(typeof env === 'function' ? env(`http://127.0.0.1:${ports[2 * nodes]}`) : env),
        },
      })
    }
    const [first] = w.#nodes
    w.admin = first.admin
    w.ingress = first.ingress
    w.service = `http://127.0.0.1:${service}`
    await Promise.all(w.#nodes.map((_, i) => w.startServer(i)))
    w.run(serviceBinary, ['-listen', `127.0.0.1:${service}`], first.env)
    return w
  }

  async startServer(i = 0) {
    const node = this.#nodes[i]
    node.server = this.run(serverBinary, [], node.env)
    await until(`the start of ${node.name}`, async () => (await fetch(`${node.admin}/health`)).ok)
  }

  /** Starts the service once more, with handlers that do not fail, and returns its address. */
  async startRepairedService() {
    const [port] = await freePorts(1)
    this.run(serviceBinary, ['-listen', `127.0.0.1:${port}`, '-repaired'], this.#nodes[0].env)
    await until('the start of the service', () => listens(port))
    return `http://127.0.0.1:${port}`
  }

  async stopServer(i = 0) {
    const p = this.#nodes[i].server
    this.#processes = this.#processes.filter((o) => o !== p)
    p.kill('SIGKILL')
    await p.ended
  }

  serverPID(i = 0) {
    return this.#nodes[i].server.pid
  }

  run(binary, args, env) {
    const p = spawn(binary, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
    p.log = ''
    for (const stream of [p.stdout, p.stderr]) stream.on('data', (d) => { p.log = (p.log + d).slice(-20_000) })
    p.ended = new Promise((resolve) => p.once('exit', resolve))
    this.#processes.push(p)
    return p
  }

  async stop() {
    for (const p of this.#processes) p.kill('SIGKILL')
    await Promise.all(this.#processes.map((p) => p.ended))
    rmSync(this.dir, { recursive: true, force: true })
  }

  async api(route, { method = 'GET', body } = {}) {
    const r = await fetch(this.admin + route, { method, headers: { ...(this.token ? { authorization: `Bearer ${this.token}` } : {}), ...(body ? { 'content-type': 'application/json' } : {}) }, body: body ? JSON.stringify(body) : undefined })
    const text = await r.text()
    if (!r.ok) throw new Error(`${method} ${route}: ${r.status} ${text}`)
    return text ? JSON.parse(text) : undefined
  }

  register() {
    return until('the registration', () => this.api('/deployments', { method: 'POST', body: { uri: this.service } }))
  }

  async call(target, input, headers = {}) {
    const r = await fetch(`${this.ingress}/${target}`, { method: 'POST', headers: { ...(this.token ? { authorization: `Bearer ${this.token}` } : {}), ...(input === undefined ? {} : { 'content-type': 'application/json' }), ...headers }, body: input === undefined ? undefined : JSON.stringify(input) })
    return { status: r.status, text: await r.text() }
  }

  /** Sends a call and returns the id of its invocation. */
  async send(target, input, query = '') {
    const r = await this.call(`${target}/send${query}`, input)
    if (r.status !== 202) throw new Error(`send ${target}: ${r.status} ${r.text}`)
    return JSON.parse(r.text).invocationId
  }

  async query(sql) {
    return (await this.api('/query', { method: 'POST', body: { query: sql } })).rows
  }

  status(id, want) {
    return until(`${id} ${want}`, async () => (await this.api(`/invocations/${id}`)).status === want)
  }
}

/** Names and texts that would break a page that does not escape them. */
export const hostile = [
  `"><img src=x onerror=alert(1)>`, `'; DROP TABLE state; --`, `<script>alert(1)</script>`, '🚀 emoji 👩‍👩‍👧', 'עברית ‮override', 'a/b?c=d#e&f%20g', 'x'.repeat(300),
]

/** Work of all kinds. Returns ids by name. */
export async function fill(w, { many = 60, steps = 0 } = {}) {
  await w.register()
  const ids = {}
  ids.order = await w.send('Orders/place', { item: 'book', amount: 2, notes: ['gift', 'fragile'] })
  ids.flaky = await w.send('Orders/flaky', 'eu-1')
  for (const host of ['eu-2', 'us-1']) await w.send('Orders/flaky', host)
  ids.rejected = await w.send('Orders/reject', 'lamp')
  ids.waiting = await w.send('Orders/wait', '2h')
  ids.later = await w.send('Orders/wait', '1ms', '?delay=1h')
  ids.holder = await w.send('Cart/busy/hold', '2h')
  ids.queued = await w.send('Cart/busy/hold', '1ms')
  await w.send('Cart/busy/hold', '1ms')
  ids.workflow = await w.send('Signup/ada/run', 'ada@example.com')
  ids.paused = await w.send('Orders/flaky', 'paused')
  for (let i = 0; i < many; i += 20) {
    await Promise.all(Array.from({ length: Math.min(20, many - i) }, (_, n) => {
      const k = i + n
      return k % 11 === 0 ? w.call('Orders/reject', `item ${k}`) : k % 3 === 0 ? w.call('Orders/place', { item: ['book', 'lamp', 'chair', 'desk'][k % 4], amount: k }) : w.call(`Cart/customer-${k % 17}/add`, { item: 'pen', amount: k })
    }))
  }
  for (const text of hostile) {
    await w.call(`Cart/${encodeURIComponent(text)}/set`, { [text]: { text, list: [text] } })
    await w.call('Orders/echo', { [text]: text })
    await w.call('Orders/reject', text)
  }
  ids.hostile = (await w.query(`SELECT id FROM sys_invocation WHERE target_service_key LIKE '%onerror%'`))[0].id
  if (steps > 0) ids.steps = await w.send('Orders/steps', steps)
  ids.large = await w.send('Orders/large', 600_000)
  await w.status(ids.order, 'completed')
  await w.status(ids.flaky, 'backing-off')
  await w.status(ids.waiting, 'suspended').catch(() => undefined)
  await w.api(`/invocations/${ids.paused}/pause?reason=waiting%20for%20the%20fix`, { method: 'PATCH' })
  await w.status(ids.paused, 'paused')
  if (steps > 0) await w.status(ids.steps, 'completed')
  return ids
}

// These replace the ones of Playwright that a page can notice. The first three load pages of the browser itself into every
// window, which takes as much CPU as a page of the UI.
const disabledFeatures = [
  'WebUIOmniboxPopup', 'WebUIOmniboxAimPopup', 'SpareRendererForSitePerProcess',
  'AvoidCorsURLLoaderRestartOnRedirect', 'AvoidUnnecessaryBeforeUnloadCheckSync', 'DestroyProfileOnBrowserClose', 'HttpsFirstBalancedModeAutoEnable', 'HttpsUpgrades', 'LensOverlay', 'MediaRouter',
  'NetworkTimeServiceQuerying', 'OptimizationHints', 'PaintHolding', 'PreconnectToSearch', 'ThirdPartyStoragePartitioning',
]

export async function browser() {
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-background-networking', '--disable-gpu', '--force-prefers-reduced-motion', '--host-resolver-rules=MAP attacker.example 127.0.0.1', `--disable-features=${disabledFeatures.join(',')}`] })
}
