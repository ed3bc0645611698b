// What the browser remembers: theme, time zone, columns, saved views, history of queries.

import { signal, type Signal } from '@preact/signals'
import type { Zone } from './lib/time.ts'

/** A value that the browser remembers; `fields` are those that the elements of a list must have as texts. */
function stored<T>(name: string, initial: T, fields: readonly string[] = []): Signal<T> {
  const key = `ui.${name}`
  const parse = (text: string | null): T => {
    try {
      const value = JSON.parse(text ?? 'null') as T
      // Other versions of the UI may have stored something else.
      if (typeof value === typeof initial && Array.isArray(value) === Array.isArray(initial) && value !== null) {
        if (!Array.isArray(value)) return value
        const texts = (item: Record<string, unknown> | null): boolean => (fields.length === 0 ? typeof item === 'string' : fields.every((f) => typeof item?.[f] === 'string'))
        const kept = value.filter(texts)
        if (kept.length > 0) return kept as T
      }
    } catch {
      // not ours
    }
    return initial
  }
  let text = null
  try {
    text = localStorage.getItem(key)
  } catch {
    // no storage
  }
  const s = signal(parse(text))
  addEventListener('storage', (e) => {
    if (e.key === key) s.value = parse(e.newValue)
  })
  let first = true
  s.subscribe((v) => {
    if (first) {
      first = false
      return
    }
    try {
      localStorage.setItem(key, JSON.stringify(v))
    } catch {
      // full or forbidden: it is not remembered
    }
  })
  return s
}

export type Theme = 'system' | 'light' | 'dark'

export const theme = stored<Theme>('theme', 'system')
export const zone = stored<Zone>('zone', 'local')
export const columns = stored<string[]>('columns', ['status', 'target', 'id', 'created', 'duration'])
export const queries = stored<string[]>('queries', [])

/** What runs of a query have cost. */
export interface QueryRuns {
  query: string
  runs: number
  failures: number
  /** Milliseconds of the latest runs that succeeded. */
  times: number[]
  rows: number
  read: number
  at: number
}
export const queryRuns = stored<QueryRuns[]>('query-runs', [], ['query'])
export const sidebarHidden = stored<boolean>('sidebar', false)

export interface SavedView {
  name: string
  search: string
}
export const views = stored<SavedView[]>('views', [], ['name', 'search'])

/** Invocations that were opened, the latest first. */
export interface Visit {
  id: string
  target: string
}
export const visits = stored<Visit[]>('visits', [], ['id', 'target'])
const maxVisits = 8

export function remember(visit: Visit): void {
  const [latest] = visits.peek()
  if (latest?.id !== visit.id) visits.value = [visit, ...visits.peek().filter((v) => v.id !== visit.id)].slice(0, maxVisits)
}

theme.subscribe((value) => {
  if (value === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = value
})

/** The colours in use, also when the system decides. */
export function isDark(): boolean {
  return theme.value === 'dark' || (theme.value === 'system' && systemDark.value)
}

const media = matchMedia('(prefers-color-scheme: dark)')
const systemDark = signal(media.matches)
media.addEventListener('change', () => {
  systemDark.value = media.matches
})
