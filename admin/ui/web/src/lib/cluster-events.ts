// Changes of the cluster as text.

export interface ClusterEvent {
  at: string
  kind: string
  node?: string
  partition?: number
  detail?: string
}

export type EventTone = 'ok' | 'bad' | 'warn' | 'idle'

const looks: Record<string, [EventTone, (e: ClusterEvent) => string]> = {
  node_started: ['ok', (e) => `started${e.detail ? `, version ${e.detail}` : ''}`],
  node_stopped: ['idle', () => 'stopped'],
  node_died: ['bad', () => 'no longer responds'],
  node_joined: ['ok', () => 'joined the cluster'],
  node_removed: ['idle', () => 'was removed from the cluster'],
  node_draining: ['warn', () => 'is being drained'],
  node_undrained: ['ok', () => 'takes replicas again'],
  disk_short: ['bad', (e) => `disk ${e.detail ?? 'is nearly full'}`],
  disk_sufficient: ['ok', () => 'disk has enough free space again'],
  metadata_leader: ['idle', () => 'leads the metadata'],
  leader_elected: ['idle', (e) => `leads partition ${e.partition}${e.detail ? `, ${e.detail}` : ''}`],
  replica_added: ['idle', (e) => `has a replica of partition ${e.partition}`],
  replica_removed: ['idle', (e) => `no longer has a replica of partition ${e.partition}`],
  replica_damaged: ['bad', (e) => `replica of partition ${e.partition} is not served${e.detail ? `: ${e.detail}` : ''}`],
  replica_recovered: ['ok', (e) => `replica of partition ${e.partition} is served again`],
  feature_level_raised: ['ok', (e) => `Feature level raised to ${e.detail}`],
}

/** What has happened, without the name of the node. Servers may report kinds that this page does not know. */
export function describeEvent(e: ClusterEvent): { tone: EventTone; text: string } {
  const look = looks[e.kind]
  if (look) return { tone: look[0], text: look[1](e) }
  const where = e.partition === undefined ? '' : `, partition ${e.partition}`
  return { tone: 'idle', text: `${e.kind.replaceAll('_', ' ')}${where}${e.detail ? `: ${e.detail}` : ''}` }
}

/**
 * Leaders that a node won at about the same time, as after a restart, in one line. The events are in descending
 * order of time.
 */
export function groupEvents(events: readonly ClusterEvent[], within = 3000): { event: ClusterEvent; partitions: number[] }[] {
  const out: { event: ClusterEvent; partitions: number[] }[] = []
  for (const e of events) {
    const last = out[out.length - 1]
    const grouped = e.kind === 'leader_elected' || e.kind === 'replica_added' || e.kind === 'replica_removed'
    if (grouped && last && last.event.kind === e.kind && last.event.node === e.node && Date.parse(last.event.at) - Date.parse(e.at) <= within) last.partitions.push(e.partition!)
    else out.push({ event: e, partitions: e.partition === undefined ? [] : [e.partition] })
  }
  for (const g of out) g.partitions.sort((a, b) => a - b)
  return out
}

/** Like describeEvent, for a group. */
export function describeGroup(g: { event: ClusterEvent; partitions: readonly number[] }): { tone: EventTone; text: string } {
  if (g.partitions.length < 2) return describeEvent(g.event)
  const list = `partitions ${g.partitions.slice(0, -1).join(', ')} and ${g.partitions[g.partitions.length - 1]}`
  switch (g.event.kind) {
    case 'leader_elected':
      return { tone: 'idle', text: `leads ${list}` }
    case 'replica_added':
      return { tone: 'idle', text: `has replicas of ${list}` }
  }
  return { tone: 'idle', text: `no longer has replicas of ${list}` }
}
