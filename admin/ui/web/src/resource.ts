// Data of a page: read once, kept while it is read again, and updated live.

import { useEffect, useRef, useState } from 'preact/hooks'
import { hasRoute } from './api/client.ts'
import { subscribe } from './live.ts'

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
const cache = new Map<string, { data: unknown; at: number }>()

function remember(key: string, data: unknown, at: number): void {
  cache.delete(key)
  cache.set(key, { data, at })
  if (cache.size > cacheSize) cache.delete(cache.keys().next().value as string)
}

/** Forgets what was read: another user may not read it. */
export function forgetAll(): void {
  cache.clear()
}

interface State<T> {
  key: string | undefined
  data: T | undefined
  error: Error | undefined
  at: number
}

/**
 * Reads with load and repeats it. A new key is new data; without a key nothing is read.
 */
export function useResource<T>(key: string | undefined, load: (signal: AbortSignal) => Promise<T>, options: ResourceOptions = {}): Resource<T> {
  const { topics = [], every = 5000, atLeast = 0, keep = false } = options
  const cached = key === undefined ? undefined : (cache.get(key) as { data: T; at: number } | undefined)
  const [state, setState] = useState<State<T>>({ key, data: cached?.data, error: undefined, at: cached?.at ?? 0 })
  const loader = useRef(load)
  loader.current = load
  const reload = useRef<() => void>(() => undefined)
  const topicList = topics.join(',')

  useEffect(() => {
    if (key === undefined) return
    const abort = new AbortController()
    let running = false
    let again = false
    let took = 0
    const run = (): void => {
      if (running) {
        again = true
        return
      }
      running = true
      const begun = performance.now()
      loader.current(abort.signal).then(
        (data) => {
          if (abort.signal.aborted) return
          const at = Date.now()
          remember(key, data, at)
          setState({ key, data, error: undefined, at })
        },
        (err: unknown) => {
          if (abort.signal.aborted) return
          setState((s) => ({ key, data: s.key === key ? s.data : undefined, error: err as Error, at: s.key === key ? s.at : 0 }))
        },
      ).finally(() => {
        took = performance.now() - begun
        running = false
        if (again && !abort.signal.aborted) {
          again = false
          run()
        }
      })
    }
    reload.current = run
    setState((s) => {
      if (s.key === key) return s
      const known = cache.get(key) as { data: T; at: number } | undefined
      if (known) return { key, data: known.data, error: undefined, at: known.at }
      return keep ? { ...s, error: undefined } : { key, data: undefined, error: undefined, at: 0 }
    })
    run()
    const stop = subscribe({ topics: topicList === '' ? [] : topicList.split(','), every, atLeast, run, took: () => took })
    return () => {
      abort.abort()
      stop()
    }
  }, [key, topicList, every, atLeast])

  const mine = state.key === key
  const data = mine || keep ? state.data : cached?.data
  return {
    data, error: mine ? state.error : undefined, loading: data === undefined && !(mine && state.error), changing: !mine && data !== undefined,
    at: state.at, reload: () => reload.current(),
  }
}

/** Reads from a route that not all servers have: null without it. The route is a path of the OpenAPI document. */
export async function optional<T>(route: string, load: () => Promise<T>): Promise<T | null> {
  return (await hasRoute(route)) ? load() : null
}
