import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { QueryRuns } from '../src/prefs.ts'
import { addRun, median } from '../src/lib/query-runs.ts'

test('the runs of a query are counted, and the latest query is the first', () => {
  let list: QueryRuns[] = []
  list = addRun(list, 'a', 1, { took: 10.4, rows: 2, read: 20 })
  list = addRun(list, 'b', 2, undefined)
  list = addRun(list, 'a', 3, { took: 30, rows: 3, read: 30 })
  list = addRun(list, 'a', 4, undefined)
  assert.deepEqual(list, [
    { query: 'a', runs: 3, failures: 1, times: [10, 30], rows: 3, read: 30, at: 4 },
    { query: 'b', runs: 1, failures: 1, times: [], rows: 0, read: 0, at: 2 },
  ])
})

test('queries and times are bounded', () => {
  let list: QueryRuns[] = []
  for (let i = 0; i < 100; i++) list = addRun(list, `q${i}`, i, { took: i, rows: 0, read: 0 })
  for (let i = 0; i < 100; i++) list = addRun(list, 'q99', i, { took: i, rows: 0, read: 0 })
  assert.equal(list.length, 50)
  assert.equal(list[0]!.times.length, 25)
})

test('the median', () => {
  assert.equal(median([5]), 5)
  assert.equal(median([9, 1, 5]), 5)
  assert.equal(median([9, 1, 5, 7]), 6)
})
