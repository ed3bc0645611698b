// Data of a page: read once, kept while it is read again, and updated live.

import { useEffect, useRef, useState } from 'preact/hooks'
import { forgetVersions, hasRoute } from './api/client.ts'
import { subscribe } from './live.ts'
import { visits } from './prefs.ts'

export interface Resource<T> {
  data: T | undefined
  /** The last read failed; data, if present, is from an earlier read. */
  error: Error | undefined
  /** There is nothing to show yet. */
  loading: boolean
  /** The data belongs to another key and is about to be replaced. */
  changing: boolean
  /** When data was read. */
  at: number
  reload: () => void
}

export interface ResourceOptions {
  topics?: readonly string[]
  /** Milliseconds between polls; 0 turns them off. 5 s. */
  every?: number
  /** Milliseconds between reads for notices; 0. */
  atLeast?: number
  /** Show the data of the previous key until the new one is there. */
  keep?: boolean
}

const cacheSize = 40
/** Data that another component has read this many milliseconds ago is not read again for one that appears. */
const fresh = 2000
const cache = new Map<string, { data: unknown; at: number }>()

function remember(key: string, data: unknown, at: number): void {
  cache.delete(key)
  cache.set(key, { data, at })
  if (cache.size > cacheSize) cache.delete(cache.keys().next().value as string)
}

/** Forgets what was read: another user may not read it. */
export function forgetAll(): void {
  cache.clear()
  visits.value = []
  forgetVersions()
}

interface State<T> {
  key: string | undefined
  data: T | undefined
  error: Error | undefined
  at: number
}

/** A component that shows a resource. */
interface User {
  load: (signal: AbortSignal) => Promise<unknown>
  topics: string
  every: number
  atLeast: number
  show: (outcome: { data: unknown; at: number } | { error: Error }) => void
}

/** The reads of a key, which are shared by all components that show it. */
class Source {
  readonly #key: string
  readonly #users = new Set<User>()
  readonly #abort = new AbortController()
  #stop = (): void => undefined
  #running = false
  #again = false
  #took = 0

  constructor(key: string) {
    this.#key = key
  }

  join(user: User): void {
    this.#users.add(user)
    this.#subscribe()
    if (this.#users.size === 1 || Date.now() - (cache.get(this.#key)?.at ?? 0) > fresh) this.run()
  }

  leave(user: User): void {
    this.#users.delete(user)
    this.#subscribe()
    if (this.#users.size > 0) return
    this.#abort.abort()
    sources.delete(this.#key)
  }

  /** Reads as often as the most demanding user wants. */
  #subscribe(): void {
    this.#stop()
    const users = [...this.#users]
    const polled = users.map((u) => u.every).filter((every) => every > 0)
    this.#stop = users.length === 0 ? () => undefined : subscribe({
      topics: [...new Set(users.flatMap((u) => (u.topics === '' ? [] : u.topics.split(','))))],
      every: polled.length > 0 ? Math.min(...polled) : 0,
      atLeast: Math.min(...users.filter((u) => u.topics !== '').map((u) => u.atLeast), Infinity),
      run: this.run, took: () => this.#took,
    })
  }

  run = (): void => {
    const [user] = this.#users
    if (this.#running || !user) {
      this.#again = true
      return
    }
    this.#running = true
    const begun = performance.now()
    const { signal } = this.#abort
    user.load(signal).then(
      (data) => {
        if (signal.aborted) return
        const at = Date.now()
        remember(this.#key, data, at)
        for (const u of this.#users) u.show({ data, at })
      },
      (error: Error) => {
        if (signal.aborted) return
        for (const u of this.#users) u.show({ error })
      },
    ).finally(() => {
      this.#took = performance.now() - begun
      this.#running = false
      if (this.#again && !signal.aborted) {
        this.#again = false
        this.run()
      }
    })
  }
}

const sources = new Map<string, Source>()

function sourceOf(key: string): Source {
  const known = sources.get(key)
  if (known) return known
  const made = new Source(key)
  sources.set(key, made)
  return made
}

/**
 * Reads with load and repeats it. A new key is new data; without a key nothing is read. Components with the same
 * key share the reads.
 */
export function useResource<T>(key: string | undefined, load: (signal: AbortSignal) => Promise<T>, options: ResourceOptions = {}): Resource<T> {
  const { topics = [], every = 5000, atLeast = 0, keep = false } = options
  const cached = key === undefined ? undefined : (cache.get(key) as { data: T; at: number } | undefined)
  const [state, setState] = useState<State<T>>({ key, data: cached?.data, error: undefined, at: cached?.at ?? 0 })
  const loader = useRef(load)
  loader.current = load
  const topicList = topics.join(',')

  useEffect(() => {
    if (key === undefined) return
    setState((s) => {
      if (s.key === key) return s
      const known = cache.get(key) as { data: T; at: number } | undefined
      if (known) return { key, data: known.data, error: undefined, at: known.at }
      return keep ? { ...s, error: undefined } : { key, data: undefined, error: undefined, at: 0 }
    })
    const user: User = {
      load: (signal) => loader.current(signal), topics: topicList, every, atLeast,
      show: (o) => setState((s) => ('error' in o
        ? { key, data: s.key === key ? s.data : undefined, error: o.error, at: s.key === key ? s.at : 0 }
        : { key, data: o.data as T, error: undefined, at: o.at })),
    }
    const source = sourceOf(key)
    source.join(user)
    return () => source.leave(user)
  }, [key, topicList, every, atLeast])

  const mine = state.key === key
  const data = mine || keep ? state.data : cached?.data
  return {
    data, error: mine ? state.error : undefined, loading: data === undefined && !(mine && state.error), changing: !mine && data !== undefined,
    at: state.at, reload: () => key !== undefined && sources.get(key)?.run(),
  }
}

/** Reads from a route that not all servers have: null without it. The route is a path of the OpenAPI document. */
export async function optional<T>(route: string, load: () => Promise<T>): Promise<T | null> {
  return (await hasRoute(route)) ? load() : null
}
