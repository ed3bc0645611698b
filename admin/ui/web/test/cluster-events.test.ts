import assert from 'node:assert/strict'
import test from 'node:test'
import { describeEvent, describeGroup, groupEvents, type ClusterEvent } from '../src/lib/cluster-events.ts'

const at = (s: number): string => new Date(1_800_000_000_000 + s * 1000).toISOString()

test('events are sentences after the name of the node', () => {
  const text = (e: Partial<ClusterEvent>): string => describeEvent({ at: at(0), kind: 'node_died', ...e }).text
  assert.equal(text({}), 'no longer responds')
  assert.equal(text({ kind: 'node_started', detail: '1.2' }), 'started, version 1.2')
  assert.equal(text({ kind: 'leader_elected', partition: 0, detail: 'term 7' }), 'leads partition 0, term 7')
  assert.equal(text({ kind: 'disk_short', detail: 'fills up (90 MiB free)' }), 'disk fills up (90 MiB free)')
  assert.equal(text({ kind: 'moon_rose', partition: 3, detail: 'late' }), 'moon rose, partition 3: late')
})

test('elections at the same time are one line', () => {
  const elected = (s: number, node: string, partition: number): ClusterEvent => ({ at: at(s), kind: 'leader_elected', node, partition })
  const groups = groupEvents([elected(9, 'n1', 3), elected(8, 'n1', 1), elected(8, 'n2', 0), { at: at(7), kind: 'node_died', node: 'n3' }, elected(1, 'n2', 5)])
  assert.deepEqual(groups.map((g) => [g.event.node, describeGroup(g).text]), [
    ['n1', 'leads partitions 1 and 3'], ['n2', 'leads partition 0'], ['n3', 'no longer responds'], ['n2', 'leads partition 5'],
  ])
})
