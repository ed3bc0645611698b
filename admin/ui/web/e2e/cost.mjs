// What open pages cost the server under load: `make ui-cost`.
//
// The requests of an open overview and of an open page of a running invocation are recorded in a browser under
// load. Then the load runs in turn on a server with these requests and on one that was never looked at, which
// therefore maintains nothing for pages either. They are replayed, because the browser itself would take the processor
// from the server. VIEWED=none measures two servers without pages, which shows the noise: on a machine that others share it is
// larger than the cost of a page. The last line is therefore from a CPU profile, as the share of the samples under load that are
// in code that runs for pages only. ROUNDS=0 takes the profile alone.

import { execFileSync, spawn } from 'node:child_process'
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { createGunzip } from 'node:zlib'
import { World, browser } from './world.mjs'

const rounds = Number(process.env.ROUNDS ?? 12)
const seconds = Number(process.env.DURATION ?? 3)
const which = (process.env.PAGES ?? 'overview,invocation').split(',')
const recordSeconds = 10
const settleMillis = 500
const profileSeconds = Number(process.env.PROFILE ?? 20)

/** Functions that run for pages only: the admin API with its streams, and the indexes behind lists and counts. */
const pageCode = 'platform/admin|platform/partition/listing|platform/partition\\.\\(\\*(lister|feed)\\)'

const start = () => World.start({ env: { PLATFORM_DEFAULT_NUM_PARTITIONS: process.env.PARTITIONS ?? '8', PLATFORM_ENABLE_PROFILES: 'true' } })
const w = await start()
const unseen = await start()

/** CPU time of a process in milliseconds. */
function cpu(pid) {
  const threads = readdirSync(`/proc/${pid}/task`).map((t) => {
    try {
      return Number(readFileSync(`/proc/${pid}/task/${t}/schedstat`, 'utf8').split(' ')[0])
    } catch {
      return 0 // the thread has ended
    }
  })
  return threads.reduce((a, x) => a + x, 0) / 1e6
}

const load = (world, duration) => new Promise((resolve, reject) => {
  const p = spawn(process.env.UI_LOAD, ['-url', `${world.ingress}/Orders/echo`, '-duration', `${duration}s`], { stdio: ['ignore', 'pipe', 'inherit'] })
  let out = ''
  p.stdout.on('data', (d) => { out += d })
  p.once('exit', (code) => (code === 0 ? resolve(Number(out)) : reject(new Error(`the load ended with ${code}`))))
})

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

async function measure(world) {
  const used = cpu(world.serverPID())
  const calls = await load(world, seconds)
  return { rate: calls / seconds, cpu: ((cpu(world.serverPID()) - used) * 1000) / calls }
}

const mean = (list) => list.reduce((a, x) => a + x, 0) / list.length
/** The half width of a 95 % confidence interval of the mean. */
function interval(list) {
  const m = mean(list)
  const t = [0, 12.71, 4.3, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.2, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.1, 2.09][list.length - 1] ?? 2.05
  return t * Math.sqrt(list.reduce((a, x) => a + (x - m) ** 2, 0) / (list.length - 1) / list.length)
}

/** The requests of pages under load, with their times. */
async function record(paths) {
  const b = await browser()
  const context = await b.newContext({ viewport: { width: 1440, height: 900 } })
  const list = []
  const loaded = load(w, recordSeconds + 5)
  for (const path of paths) {
    const page = await context.newPage()
    await page.goto(w.admin + path)
    page.on('request', (r) => list.push({ at: performance.now(), path: r.url().slice(w.admin.length) }))
  }
  await sleep(4000)
  const begun = performance.now()
  const streams = [...new Set(list.filter((r) => r.path.startsWith('/events')).map((r) => r.path))]
  await sleep(recordSeconds * 1000)
  await loaded
  await b.close()
  return { streams, requests: list.filter((r) => r.at >= begun && r.at < begun + recordSeconds * 1000 && r.path.startsWith('/') && !r.path.startsWith('/events')).map((r) => ({ at: r.at - begun, path: r.path })) }
}

/** Repeats the recorded requests until the returned function is called. A journal is continued, as a page does. */
function replay({ streams, requests }) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 6 })
  const next = new Map()
  const send = (path) => {
    const journal = /^(\/invocations\/\w+\/journal\?(?:.*&)?from=)(\d+)(.*)/.exec(path)
    if (!journal) return request(path, (r) => r.resume())
    const [, before, recorded, after] = journal
    request(before + (next.get(before) ?? recorded) + after, async (r) => {
      const entries = JSON.parse(await text(r.headers['content-encoding'] === 'gzip' ? r.pipe(createGunzip()) : r)).entries
      if (entries.length > 0) next.set(before, entries.at(-1).index + 1)
    })
  }
  const request = (path, done) => http.get(w.admin + path, { agent, headers: { accept: 'application/json', 'accept-encoding': 'gzip' } }, done).on('error', () => undefined)
  const open = streams.map((path) => http.get(w.admin + path, { agent: false, headers: { accept: 'text/event-stream' } }, (r) => r.resume()).on('error', () => undefined))
  const timers = new Set()
  const round = () => {
    for (const r of requests) {
      const t = setTimeout(() => { timers.delete(t); send(r.path) }, r.at)
      timers.add(t)
    }
  }
  round()
  const repeat = setInterval(round, recordSeconds * 1000)
  return () => {
    clearInterval(repeat)
    for (const t of timers) clearTimeout(t)
    for (const s of open) s.destroy()
    agent.destroy()
  }
}

/** The share of the CPU of a server under load, in percent, that its pages cost. */
async function share(recorded) {
  const stop = replay(recorded)
  const loaded = load(w, profileSeconds + 4)
  await sleep(2000)
  const file = path.join(w.dir, 'cpu.pprof')
  writeFileSync(file, Buffer.from(await (await fetch(`${w.admin}/debug/pprof/profile?seconds=${profileSeconds}`)).arrayBuffer()))
  await loaded
  stop()
  const top = execFileSync('go', ['tool', 'pprof', '-top', '-cum', '-nodecount=100000', '-nodefraction=0', `-focus=${pageCode}`, file], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
  if (process.env.VERBOSE) console.log(top.split('\n').slice(0, 40).join('\n'))
  const m = /Showing nodes accounting for \S+, ([\d.]+)% of (\S+) total/.exec(top)
  if (!m) throw new Error(`no result in the profile: ${top}`)
  return { percent: Number(m[1]), total: m[2] }
}

function summary(requests) {
  const counts = {}
  for (const r of requests) {
    const name = r.path.replace(/\?.*/, '').replace(/inv_\w+/, 'ID')
    counts[name] = (counts[name] ?? 0) + 1
  }
  return Object.entries(counts).sort((x, y) => y[1] - x[1]).map(([name, n]) => `${name} ${(n / recordSeconds).toFixed(1)}`).join(', ')
}

try {
  await Promise.all([w.register(), unseen.register()])
  const ticking = await w.send('Orders/ticks', 1_000_000)
  await unseen.send('Orders/ticks', 1_000_000)
  const urls = { overview: '/ui/', invocation: `/ui/invocations/${ticking}`, invocations: '/ui/invocations', failures: '/ui/failures' }
  let recorded = { requests: [], streams: [] }
  if (process.env.VIEWED === 'none') await load(w, recordSeconds + 5)
  else {
    recorded = await record(which.map((name) => urls[name]))
    console.log(`${(recorded.requests.length / recordSeconds).toFixed(1)} requests/s and ${recorded.streams.length} streams: ${summary(recorded.requests)}`)
  }
  if (rounds > 0) await load(unseen, recordSeconds + 5)
  const cost = [], rate = []
  for (let r = 0; r < rounds; r++) {
    const pair = {}
    for (const on of r % 2 === 0 ? [true, false] : [false, true]) {
      const stop = on ? replay(recorded) : undefined
      await sleep(settleMillis)
      pair[on] = await measure(on ? w : unseen)
      stop?.()
    }
    cost.push((pair[true].cpu / pair[false].cpu - 1) * 100)
    rate.push((1 - pair[true].rate / pair[false].rate) * 100)
    console.log(`round ${r + 1}: without ${pair[false].rate.toFixed(0)} op/s ${pair[false].cpu.toFixed(1)} µs/op; with ${pair[true].rate.toFixed(0)} op/s ${pair[true].cpu.toFixed(1)} µs/op; CPU ${cost.at(-1).toFixed(2)} %`)
  }
  if (rounds > 1) console.log(`CPU per call +${mean(cost).toFixed(2)} ± ${interval(cost).toFixed(2)} %; throughput −${mean(rate).toFixed(2)} ± ${interval(rate).toFixed(2)} %`)
  const { percent, total } = await share(recorded)
  console.log(`of the ${total} of CPU that the server used under load in ${profileSeconds} s, ${percent.toFixed(2)} % were for pages`)
} finally {
  await Promise.all([w.stop(), unseen.stop()])
}
