// The filters of the invocation list and their form in the address.

export const statuses = ['pending', 'scheduled', 'ready', 'running', 'backing-off', 'suspended', 'paused', 'completed'] as const
export type Status = (typeof statuses)[number]

/** Names of filters: parameters of GET /invocations, and of the page's address. */
export const filterNames = [
  'status', 'result', 'service', 'handler', 'key', 'scope', 'limit_key', 'deployment', 'invoked_by', 'idempotency_key',
  'error_code', 'failure_group', 'created_after', 'created_before', 'modified_after', 'modified_before', 'completed_after', 'completed_before',
] as const
export type FilterName = (typeof filterNames)[number]

/** Filters that can have several values, one of which must match. */
export const repeatable: ReadonlySet<FilterName> = new Set<FilterName>(['status', 'result', 'service', 'handler', 'key', 'scope', 'deployment'])

export const filterTitles: Record<FilterName, string> = {
  status: 'Status', result: 'Result', service: 'Service', handler: 'Handler', key: 'Key', scope: 'Scope', limit_key: 'Limit key',
  deployment: 'Deployment', invoked_by: 'Invoked by', idempotency_key: 'Idempotency key', error_code: 'Error code', failure_group: 'Failure group',
  created_after: 'Created after', created_before: 'Created before', modified_after: 'Modified after', modified_before: 'Modified before',
  completed_after: 'Completed after', completed_before: 'Completed before',
}

/** Values of filters that have a fixed set of them. */
export const filterValues: Partial<Record<FilterName, readonly string[]>> = {
  status: statuses,
  result: ['success', 'failure', 'cancelled', 'killed'],
  invoked_by: ['ingress', 'service', 'subscription', 'restart_as_new'],
}

export interface Filter {
  name: FilterName
  value: string
}

export interface ListState {
  filters: Filter[]
  oldestFirst: boolean
  /** Sort by the last change of status instead of the creation. */
  byModified?: boolean
}

const known: ReadonlySet<string> = new Set(filterNames)

/** Reads the address; parameters that are no filters are ignored. */
export function parseFilters(query: URLSearchParams): ListState {
  const filters: Filter[] = []
  for (const [name, value] of query) {
    if (!known.has(name)) continue
    const f = { name: name as FilterName, value }
    if (!repeatable.has(f.name) && filters.some((o) => o.name === f.name)) continue
    if (filters.some((o) => o.name === f.name && o.value === f.value)) continue
    filters.push(f)
  }
  return { filters, oldestFirst: query.get('oldest_first') === 'true', ...(query.get('sort') === 'modified' ? { byModified: true } : {}) }
}

/** The inverse of parseFilters. */
export function formatFilters(state: ListState): URLSearchParams {
  const query = new URLSearchParams()
  for (const name of filterNames) {
    for (const f of state.filters) if (f.name === name) query.append(name, f.value)
  }
  if (state.byModified) query.set('sort', 'modified')
  if (state.oldestFirst) query.set('oldest_first', 'true')
  return query
}

/** Adds a filter; a name that can only have one value gets the new one. */
export function withFilter(filters: Filter[], added: Filter): Filter[] {
  const kept = filters.filter((f) => f.name !== added.name || (repeatable.has(f.name) && f.value !== added.value))
  return [...kept, added]
}

export function withoutFilter(filters: Filter[], removed: Filter): Filter[] {
  return filters.filter((f) => f.name !== removed.name || f.value !== removed.value)
}

/**
 * Adds the filter, or removes it if it is there. Statuses and results exclude each other: a result is one of completed
 * invocations, so both together would select nothing, or one of them would have no effect.
 */
export function toggleFilter(filters: Filter[], f: Filter): Filter[] {
  if (filters.some((o) => o.name === f.name && o.value === f.value)) return withoutFilter(filters, f)
  const other = f.name === 'status' ? 'result' : f.name === 'result' ? 'status' : undefined
  return withFilter(filters.filter((o) => o.name !== other), f)
}

export interface Preset {
  id: string
  title: string
  hint: string
  filters: Filter[]
  oldestFirst: boolean
}

const of = (...values: Status[]): Filter[] => values.map((value) => ({ name: 'status', value }))

export const presets: readonly Preset[] = [
  { id: 'all', title: 'All', hint: 'every invocation that is kept', filters: [], oldestFirst: false },
  { id: 'unfinished', title: 'Unfinished', hint: 'everything that has not completed', filters: of('pending', 'scheduled', 'ready', 'running', 'backing-off', 'suspended', 'paused'), oldestFirst: false },
  { id: 'running', title: 'Running', hint: 'an attempt is open now', filters: of('running'), oldestFirst: false },
  { id: 'stuck', title: 'Held up', hint: 'retrying, paused or waiting for a slot or a key', filters: of('pending', 'backing-off', 'paused'), oldestFirst: true },
  { id: 'scheduled', title: 'Scheduled', hint: 'start later', filters: of('scheduled'), oldestFirst: false },
  { id: 'completed', title: 'Completed', hint: 'succeeded or failed', filters: of('completed'), oldestFirst: false },
]

function sameFilters(a: Filter[], b: Filter[]): boolean {
  const text = (list: Filter[]): string => list.map((f) => `${f.name}=${f.value}`).sort().join('&')
  return text(a) === text(b)
}

/** The preset that a state is, if any. */
export function presetOf(state: ListState): Preset | undefined {
  return presets.find((p) => sameFilters(p.filters, state.filters) && p.oldestFirst === state.oldestFirst && !state.byModified)
}

/**
 * Parses the input of the filter box: `service:Greeter`, `status=paused`, an invocation id, or the
 * name of a service. Returns undefined when the text is not a filter.
 */
export function parseFilterText(text: string, services: readonly string[]): Filter | undefined {
  const t = text.trim()
  const m = /^([a-z_]+)\s*[:=]\s*(.+)$/s.exec(t)
  if (m && known.has(m[1]!)) return { name: m[1] as FilterName, value: m[2]!.trim() }
  if ((statuses as readonly string[]).includes(t)) return { name: 'status', value: t }
  if (services.includes(t)) return { name: 'service', value: t }
  if (/^dp_[0-9A-Za-z]+$/.test(t)) return { name: 'deployment', value: t }
  return undefined
}
