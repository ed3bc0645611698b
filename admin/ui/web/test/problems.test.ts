import assert from 'node:assert/strict'
import { test } from 'node:test'
import { groupProblems } from '../src/lib/problems.ts'

test('partitions with the same problem are one line', () => {
  assert.deepEqual(groupProblems(['the metadata has no leader', 'partition 0 has no leader', 'partition 3 has no leader', 'node n2 (2) is down']),
    ['the metadata has no leader', 'partitions 0 and 3 have no leader', 'node n2 (2) is down'])
  assert.deepEqual(groupProblems(['partition 7 has no leader']), ['partition 7 has no leader'])
  assert.deepEqual(groupProblems(Array.from({ length: 24 }, (_, i) => `partition ${i} has no leader`)), ['partitions 0, 1, 2, 3, 4, 5 and 18 more have no leader'])
  assert.deepEqual(groupProblems(['partition 1 on n2 is in quarantine: damaged', 'partition 2 on n2 is in quarantine: damaged']), ['partition 1 on n2 is in quarantine: damaged', 'partition 2 on n2 is in quarantine: damaged'])
  assert.deepEqual(groupProblems([]), [])
})
