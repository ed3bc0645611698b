// The filters of the list of awakeables, and their form in the address.

import { kindOfID } from './format.ts'

/** Parameters of GET /awakeables that select, and of the page's address. */
export const awakeableFilters = ['service', 'handler', 'key', 'scope', 'id'] as const
export type AwakeableFilters = Partial<Record<(typeof awakeableFilters)[number], string | undefined>>

export function parseAwakeableFilters(query: URLSearchParams): AwakeableFilters {
  const out: AwakeableFilters = {}
  for (const name of awakeableFilters) {
    const value = query.get(name)
    if (value) out[name] = value
  }
  return out
}

/** What a text in the search field looks for: an awakeable, the invocation of that id, or a key. */
export function findAwakeables(text: string, now: AwakeableFilters): { filters: AwakeableFilters } | { invocation: string } {
  const wanted = text.trim()
  const kind = kindOfID(wanted)
  if (kind === 'invocation') return { invocation: wanted }
  if (kind === 'awakeable') return { filters: { id: wanted } }
  const { id: _, key: __, ...others } = now
  return { filters: wanted === '' ? others : { ...others, key: wanted } }
}
