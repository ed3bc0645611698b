// Statistics of the queries that a browser has run.

import type { QueryRuns } from '../prefs.ts'

/** Queries and times that are kept. */
const maxQueries = 50
const maxTimes = 25

/** Adds a run of a query, without a cost if it has failed. The latest query is the first. */
export function addRun(list: readonly QueryRuns[], query: string, at: number, cost: { took: number; rows: number; read: number } | undefined): QueryRuns[] {
  const before = list.find((r) => r.query === query) ?? { query, runs: 0, failures: 0, times: [], rows: 0, read: 0, at }
  const run: QueryRuns = {
    ...before, at, runs: before.runs + 1,
    ...(cost ? { times: [...before.times, Math.round(cost.took)].slice(-maxTimes), rows: cost.rows, read: cost.read } : { failures: before.failures + 1 }),
  }
  return [run, ...list.filter((r) => r !== before)].slice(0, maxQueries)
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const half = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2
}
