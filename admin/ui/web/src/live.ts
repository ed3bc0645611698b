// Live updates: one stream of change notices for the tab while it is visible, else polling. What changed is read
// again; notices have no content.

import { credentials, loginNeeded, token } from './session.ts'
import { effect, signal } from '@preact/signals'
import { hasRoute } from './api/client.ts'

export type LiveMode = 'stream' | 'poll'

/** The source of change notices. */
export const liveMode = signal<LiveMode>('poll')
/** The user has stopped updates. */
export const livePaused = signal(false)
export const pageVisible = signal(document.visibilityState !== 'hidden')

document.addEventListener('visibilitychange', () => {
  pageVisible.value = document.visibilityState !== 'hidden'
})

export interface Subscription {
  topics: readonly string[]
  /** Milliseconds between polls without a stream; 0: never. */
  every: number
  run: () => void
  /** Duration of the last read, so that slow ones are repeated less often. */
  took: () => number
  /** Milliseconds between reads for notices; 0. */
  atLeast?: number
}

interface Entry extends Subscription {
  last: number
  /** A notice came too early for a read. */
  due: boolean
}

const entries = new Set<Entry>()

export function subscribe(s: Subscription): () => void {
  const entry: Entry = { ...s, last: Date.now(), due: false }
  entries.add(entry)
  topicsChanged()
  return () => {
    entries.delete(entry)
    topicsChanged()
  }
}

/** Reads again whatever is due. */
function tick(): void {
  if (!pageVisible.peek() || livePaused.peek() || loginNeeded.peek()) return
  const now = Date.now()
  for (const e of entries) {
    const interval = Math.max(streamed(e) ? 30_000 : e.every, 10 * e.took())
    if ((e.every > 0 && now - e.last >= interval) || (e.due && !tooEarly(e, now))) refresh(e, now)
  }
}

/** All topics are in the stream, which has a limit. */
function streamed(e: Entry): boolean {
  return liveMode.peek() === 'stream' && e.topics.length > 0 && e.topics.every((t) => current?.topics.includes(t))
}

/** Notices can arrive faster than reads complete. */
function tooEarly(e: Entry, now: number): boolean {
  return now - e.last < Math.max(e.atLeast ?? 0, 3 * e.took())
}

function refresh(e: Entry, now = Date.now()): void {
  e.last = now
  e.due = false
  e.run()
}

function notify(e: Entry): void {
  if (tooEarly(e, Date.now())) e.due = true
  else refresh(e)
}

setInterval(tick, 500)

/** Reads everything again, as after an action. */
export function refreshAll(): void {
  for (const e of entries) refresh(e)
}

// The stream.

let current: { topics: readonly string[]; abort: AbortController } | undefined
let lastID = ''
let scheduled: ReturnType<typeof setTimeout> | undefined
let unavailableUntil = 0

function topicsChanged(): void {
  if (scheduled !== undefined) return
  scheduled = setTimeout(() => {
    scheduled = undefined
    reconcile()
  }, 50)
}

function wanted(): string[] {
  if (!pageVisible.peek() || livePaused.peek() || loginNeeded.peek()) return []
  return [...new Set([...entries].flatMap((e) => e.topics))].slice(0, 16).sort()
}

function reconcile(): void {
  const topics = wanted()
  if (current?.topics.join() === topics.join()) return
  current?.abort.abort()
  current = undefined
  if (topics.length === 0 || Date.now() < unavailableUntil) return
  const abort = new AbortController()
  current = { topics, abort }
  void follow(topics.join(), abort)
}

async function follow(topics: string, abort: AbortController): Promise<void> {
  for (let failures = 0; !abort.signal.aborted; failures++) {
    try {
      const connected = await listen(topics, abort.signal)
      if (connected) failures = 0
    } catch (err) {
      if (abort.signal.aborted) return
      if (err instanceof Unavailable) {
        unavailableUntil = Date.now() + err.retryAfter
        liveMode.value = 'poll'
        current = undefined
        setTimeout(topicsChanged, err.retryAfter + 100)
        return
      }
    }
    if (abort.signal.aborted) return
    liveMode.value = 'poll'
    await new Promise((resolve) => setTimeout(resolve, Math.min(500 * 2 ** failures, 15_000)))
  }
}

class Unavailable extends Error {
  readonly retryAfter: number
  constructor(retryAfter: number) {
    super('no stream')
    this.retryAfter = retryAfter
  }
}

/** Without a byte for this long, the connection is considered dead (heartbeats arrive every 15 s). */
const silence = 45_000

async function listen(topics: string, signal: AbortSignal): Promise<boolean> {
  if (!(await hasRoute('/events'))) throw new Unavailable(600_000)
  const watchdog = new AbortController()
  const both = AbortSignal.any([signal, watchdog.signal])
  const sentToken = token.peek()
  const response = await fetch(`/events?topics=${encodeURIComponent(topics)}`, {
    signal: both, cache: 'no-store', headers: { accept: 'text/event-stream', ...credentials(), ...(lastID ? { 'last-event-id': lastID } : {}) },
  })
  if (!response.ok || !response.body) {
    await response.body?.cancel()
    // The token was revoked or has expired, which ends streams.
    if (response.status === 401 && sentToken === token.peek()) loginNeeded.value = true
    throw new Unavailable(response.status === 401 ? 1000 : response.status === 429 || response.status === 503 ? 15_000 : 120_000)
  }
  liveMode.value = 'stream'
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  let timer = setTimeout(() => watchdog.abort(), silence)
  let buffer = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return true
      clearTimeout(timer)
      timer = setTimeout(() => watchdog.abort(), silence)
      buffer += value.replaceAll('\r\n', '\n')
      for (let end = buffer.indexOf('\n\n'); end >= 0; end = buffer.indexOf('\n\n')) {
        receive(buffer.slice(0, end))
        buffer = buffer.slice(end + 2)
      }
      if (buffer.length > 1 << 20) throw new Error('an event is too large')
    }
  } finally {
    clearTimeout(timer)
    reader.cancel().catch(() => undefined)
  }
}

function receive(block: string): void {
  let data = ''
  for (const line of block.split('\n')) {
    if (line.startsWith('id:')) lastID = line.slice(3).trim()
    else if (line.startsWith('data:')) data += line.slice(5).trim()
  }
  if (data === '') return
  try {
    const { topic } = JSON.parse(data) as { topic?: string }
    if (topic === undefined) return
    for (const e of entries) if (e.topics.includes(topic)) notify(e)
  } catch {
    // not a notice
  }
}

effect(() => {
  const visible = pageVisible.value
  const paused = livePaused.value || loginNeeded.value
  if (visible && !paused) {
    // Changes that were missed while the page was hidden.
    for (const e of entries) if (e.every > 0 && Date.now() - e.last > Math.min(e.every, 5000)) refresh(e)
  }
  topicsChanged()
})
