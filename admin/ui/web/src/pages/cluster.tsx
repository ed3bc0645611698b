// Nodes, partitions and replicas.

import { useState } from 'preact/hooks'
import { APIError, clusterHealth, get, request } from '../api/client.ts'
import type { ClusterConfig, ClusterHealth, ClusterNode, NodeUsage, Partition, Replica } from '../api/types.ts'
import { describeGroup, groupEvents, type ClusterEvent } from '../lib/cluster-events.ts'
import { formatBytes, formatCount, plural } from '../lib/format.ts'
import { groupProblems } from '../lib/problems.ts'
import { refreshAll } from '../live.ts'
import { optional, useResource } from '../resource.ts'
import { segment } from '../router.ts'
import { Button, ErrorBox, Facts, Field, Loaded, Menu, PageHead, Pill, Section, Skeleton, Stale, Time } from '../ui/basic.tsx'
import { Icon, StatusShape } from '../ui/icons.tsx'
import { DialogFrame, Force, ask, openDialog, toast, toastError, withoutForce } from '../ui/overlay.tsx'
import { byName } from './common.tsx'

export function Cluster() {
  const health = useResource('health', clusterHealth, { every: 2000, topics: ['cluster'] })
  // Without topics: what nodes use of their machines changes without a notice.
  const nodes = useResource('nodes', (s) => get<{ nodes: ClusterNode[] }>('/cluster/nodes', s), { every: 5000 })
  const partitions = useResource('partitions', (s) => get<{ partitions: Partition[] }>('/cluster/partitions', s), { every: 2000, topics: ['cluster'] })
  const events = useResource('cluster-events', (s) => optional('/cluster/events', () => get<EventList>('/cluster/events?limit=300', s)), { every: 5000, topics: ['cluster'] })
  const config = useResource('cluster-config', (s) => get<ClusterConfig>('/cluster/config', s), { every: 30_000 })
  const h = health.data
  if (!h && health.error) return <><PageHead title="Cluster" /><ErrorBox what="The cluster could not be read" error={health.error} retry={health.reload} /></>
  if (!h) return <Skeleton rows={12} />
  const list = byName(health.at < nodes.at && h.status !== 'unavailable' ? nodes.data?.nodes ?? [] : withHealth(nodes.data?.nodes ?? [], h))
  const single = list.length === 1
  return (
    <>
      <PageHead title="Cluster" summary={<>{h.cluster_name} · {plural(list.length, 'node')} · {plural(partitions.data?.partitions.length ?? 0, 'partition')}{config.data ? ` · replication ${config.data.replication}` : ''}</>}>
        <Button icon="edit" needs="administer" onClick={() => config.data && void openDialog('Configuration', (close) => <Configure config={config.data!} close={close} />)}>Configuration</Button>
      </PageHead>
      <Stale error={health.error} at={health.at} retry={health.reload} />
      <section class={`health-card ${h.status}`} role="status">
        <span class="why-shape"><StatusShape shape={h.status === 'healthy' ? 'ok' : 'fail'} size={16} /></span>
        <div>
          <h2>{h.status === 'healthy' ? 'Healthy' : h.status === 'degraded' ? 'Degraded' : 'Unavailable'}</h2>
          {(h.problems ?? []).length > 0 ? <><ul>{groupProblems(h.problems!).map((p) => <li key={p}>{p}</li>)}</ul><Remedy h={h} nodes={list} /></> : <p class="muted">{survival(h)}</p>}
        </div>
      </section>
      <Loaded of={nodes} what="The nodes could not be read">{() => (
        <div class="nodes">
          {list.map((n) => <NodeCard key={n.id} n={n} single={single} total={partitions.data?.partitions.length ?? 0} voters={h.metadata_cluster_health?.leader} />)}
        </div>
      )}</Loaded>
      <Loaded of={partitions} what="The partitions could not be read">{(p) => <Grid nodes={list} partitions={p.partitions} />}</Loaded>
      <div class="split">
        <Section title="Feature level">
          {h.feature_level ? <Facts rows={[
            ['Level', formatCount(h.feature_level.level)],
            ['All nodes support', formatCount(h.feature_level.supported)],
            h.feature_level.held ? ['Held', 'by the configuration of a node'] : null,
            h.feature_level.waiting.length > 0 ? ['Waiting for', <ul class="plain-list">{h.feature_level.waiting.map((w) => <li key={w}>{w}</li>)}</ul>] : null,
          ]} /> : <p class="muted">Unknown</p>}
        </Section>
        <Section title="Metadata">
          {h.metadata_cluster_health ? <Facts rows={[
            ['Quorum', h.metadata_cluster_health.quorum ? <Pill tone="ok">yes</Pill> : <Pill tone="bad">no: nothing can be changed</Pill>],
            ['Leader', nameOf(list, h.metadata_cluster_health.leader)],
            ['Voters', h.metadata_cluster_health.voters.map((v) => nameOf(list, v)).join(', ')],
            h.metadata_cluster_health.learners.length > 0 ? ['Learners', h.metadata_cluster_health.learners.map((v) => nameOf(list, v)).join(', ')] : null,
          ]} /> : <p class="muted">Unknown</p>}
        </Section>
      </div>
      {events.data !== null && <Section title="Recent changes" flush><Loaded of={events} rows={4} what="The changes could not be read">{(e) => <Events list={e!} />}</Loaded></Section>}
    </>
  )
}

/** The health, which is read more often than the list of nodes and without a majority, says which of them respond. */
function withHealth(nodes: ClusterNode[], h: ClusterHealth): ClusterNode[] {
  return nodes.map((n) => {
    const now = h.nodes?.find((o) => o.id === n.id)
    if (!now) return n
    // Since when it is in another state is known with the next list.
    const { state_since: since, ...rest } = n
    return { ...rest, ...(now.state === n.state && since ? { state_since: since } : {}), state: now.state, leaders: now.leaders }
  })
}

interface EventList {
  events: ClusterEvent[]
  nodes: { name: string; reason?: string }[]
}

/** Lines drawn at first. */
const eventsShown = 12

function Events({ list }: { list: EventList }) {
  const [all, setAll] = useState(false)
  const groups = groupEvents(list.events)
  const missing = list.nodes.filter((n) => n.reason)
  return (
    <>
      {groups.length === 0 ? <p class="journal-empty">None since the nodes started.</p> : (
        <ul class="events">
          {groups.slice(0, all ? groups.length : eventsShown).map((g) => {
            const { tone, text } = describeGroup(g)
            return <li key={`${g.event.at} ${g.event.kind} ${g.event.node} ${g.event.partition}`} class={tone}><Time at={g.event.at} /><i aria-hidden="true" /><span>{g.event.node && <b>{g.event.node} </b>}{text}</span></li>
          })}
        </ul>
      )}
      {(groups.length > eventsShown || missing.length > 0) && (
        <p class="section-note">
          {groups.length > eventsShown && <Button small onClick={() => setAll(!all)}>{all ? 'Show fewer' : `Show all ${formatCount(groups.length)}`}</Button>}
          {missing.length > 0 && <span class="muted">Incomplete: no events from {missing.map((n) => `${n.name}, ${n.reason}`).join('; ')}</span>}
        </p>
      )}
    </>
  )
}

/** What a node uses of its machine. */
function Usage({ of: u }: { of: NodeUsage }) {
  const rows: [string, string, number | undefined, string?][] = [['CPU', `${u.cpu_cores.toFixed(u.cpu_cores < 10 ? 1 : 0)} of ${plural(u.cores, 'core')}`, u.cpu_cores / u.cores]]
  rows.push(['Memory', u.memory_limit_bytes ? `${formatBytes(u.memory_bytes)} / ${formatBytes(u.memory_limit_bytes)}` : formatBytes(u.memory_bytes), u.memory_limit_bytes ? u.memory_bytes / u.memory_limit_bytes : undefined])
  if (u.disk_total_bytes) rows.push(['Disk', `${formatBytes(u.disk_free_bytes ?? 0)} free`, 1 - (u.disk_free_bytes ?? 0) / u.disk_total_bytes, `of ${formatBytes(u.disk_total_bytes)}`])
  return (
    <dl class="node-usage">
      {rows.map(([name, text, share, title]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd class="num" title={title}>{text}</dd>
          {share !== undefined && <i class={share > 0.9 ? 'bad' : share > 0.75 ? 'warn' : ''} aria-hidden="true"><b style={{ width: `${Math.min(100, Math.max(1, share * 100))}%` }} /></i>}
        </div>
      ))}
    </dl>
  )
}

const nameOf = (nodes: ClusterNode[], id: string | undefined): string => (id === undefined ? 'none' : nodes.find((n) => n.id === id)?.name ?? `node ${id}`)

/** What to do if nodes do not respond. */
function Remedy({ h, nodes }: { h: ClusterHealth; nodes: ClusterNode[] }) {
  const down = nodes.filter((n) => n.state !== 'alive').map((n) => n.name)
  if (down.length === 0 || h.status === 'healthy') return null
  const names = down.length === 1 ? down[0]! : `${down.slice(0, -1).join(', ')} and ${down[down.length - 1]!}`
  return (
    <p class="remedy">
      Start {names} again with the same data {down.length === 1 ? 'directory' : 'directories'}: nothing is lost, and work continues by itself.
      {h.status === 'unavailable' && <> Only if the disks are lost for good: <code>platform docs cluster</code>, “When a majority is lost for good”.</>}
    </p>
  )
}

function survival(h: ClusterHealth): string {
  const s = h.losses_survived
  if (!s) return 'All partitions have a leader.'
  if (h.nodes?.length === 1) return 'All partitions have a leader. This is the only node: nothing runs while it is down.'
  if (s.now === 0) return 'All partitions have a leader. If a node fails, its partitions are unavailable until it is back: they have no majority without it.'
  return `All partitions have a leader. The cluster stays available if ${s.now === 1 ? 'any one node fails' : `any ${s.now} nodes fail`}.`
}

function NodeCard({ n, single, total, voters }: { n: ClusterNode; single: boolean; total: number; voters: string | undefined }) {
  const state = n.draining ? ['warn', 'pause', n.stopping ? 'Stopping' : 'Draining'] as const : n.state === 'alive' ? ['ok', 'ok', n.stopping ? 'Stopping' : 'Alive'] as const : n.state === 'left' ? ['idle', 'none', 'Stopped'] as const : ['bad', 'fail', n.state === 'dead' ? 'Not responding' : 'Unknown'] as const
  const change = (verb: 'drain' | 'undrain'): void => {
    const run = async (force = false): Promise<void> => {
      await request(`/cluster/nodes/${segment(n.name)}/${verb}${force ? '?force=true' : ''}`, { method: 'PATCH' })
      toast('ok', verb === 'drain' ? `${n.name} is being drained` : `${n.name} gets replicas again`)
      refreshAll()
    }
    if (verb === 'undrain') run().catch((err: unknown) => toastError(err))
    else void ask({ title: `Drain ${n.name}?`, action: 'Drain', danger: false, force: 'Drain it anyway. Until another node is added, the failure of one more node stops work.', body: <><p>Its {plural(n.replicas, 'replica')} move to other nodes, and it leads {n.leaders === 1 ? 'its partition' : `its ${n.leaders} partitions`} no longer. Calls go on meanwhile.</p><p>Drain a node before you remove it. Undrain reverts it.</p></> }, run)
  }
  return (
    <article class={`node ${state[0]}`} aria-label={n.name}>
      <header>
        <span class={`status ${state[0]}`}><StatusShape shape={state[1]} /><span>{state[2]}</span></span>
        <h3>{n.name}</h3>
        <span class="muted mono" title="id of the node">{n.id}</span>
        {n.self && <Pill title="the node that answers this page">this node</Pill>}
        {voters === n.id && <Pill tone="accent" title="leads the metadata">metadata leader</Pill>}
        {!single && <Menu label={`Actions of ${n.name}`} icon="more" kind="ghost" items={[
          n.draining ? { title: 'Undrain', icon: 'play' as const, needs: 'administer' as const, run: () => change('undrain') } : { title: 'Drain', icon: 'pause' as const, needs: 'administer' as const, run: () => change('drain') },
          { title: 'Remove from the cluster', icon: 'trash', danger: true, needs: 'administer', disabled: n.state === 'alive' && !n.draining, hint: n.state === 'alive' && !n.draining ? 'Drain and stop it first' : '', run: () => void ask({
            title: `Remove ${n.name}?`, action: 'Remove', danger: true, typed: n.name, force: 'Remove it anyway: its disk is lost for good, or another node has the same data.',
            body: <p>It is no longer a member, and its data is not used again. If it has the only copy of something, the server refuses.</p>,
          }, async (force) => {
            await request(`/cluster/nodes/${segment(n.name)}${force ? '?force=true' : ''}`, { method: 'DELETE', timeout: 20_000 })
            toast('ok', `${n.name} was removed`)
            refreshAll()
          }) },
        ]} />}
      </header>
      {n.disk && <p class="notice">{n.disk}</p>}
      <div class="node-figures">
        <div><b class="num">{n.leaders}</b><span>{n.leaders === 1 ? 'leader' : 'leaders'}</span></div>
        <div><b class="num">{n.replicas}</b><span>{n.replicas === 1 ? 'replica' : 'replicas'}</span></div>
        <div class="load" role="img" aria-label={`leads ${n.leaders} of ${total} partitions`}><i style={{ width: `${total === 0 ? 0 : (n.leaders / total) * 100}%` }} /></div>
      </div>
      {n.usage && <Usage of={n.usage} />}
      <dl class="node-facts">
        <div><dt>Version</dt><dd class="mono">{n.version ?? '–'}</dd></div>
        <div><dt>Metadata</dt><dd>{n.metadata_role}</dd></div>
        <div><dt>{n.state === 'alive' ? 'Started' : 'Since'}</dt><dd><Time at={n.state === 'alive' ? n.started_at : n.state_since} /></dd></div>
        <div><dt>Address</dt><dd class="mono wrap">{n.address}</dd></div>
        <div><dt>Ingress</dt><dd class="mono wrap">{withoutScheme(n.ingress_address)}</dd></div>
        <div><dt>Admin</dt><dd class="mono wrap">{withoutScheme(n.admin_address)}</dd></div>
      </dl>
    </article>
  )
}

const withoutScheme = (address: string | undefined): string => address?.replace(/^http:\/\//, '').replace(/\/$/, '') ?? '–'

/** Partitions × nodes: who leads, who follows and how far behind. */
function Grid({ nodes, partitions }: { nodes: ClusterNode[]; partitions: Partition[] }) {
  const [chosen, setChosen] = useState<number>()
  const p = partitions.find((o) => o.id === chosen)
  const troubled = partitions.filter((o) => !o.leader || o.replicas.some((r) => r.quarantine)).length
  return (
    <Section title="Partitions" count={formatCount(partitions.length)} flush actions={
      <div class="legend"><span><i class="cell leader" />leads</span><span><i class="cell voter" />follows</span><span><i class="cell behind" />catching up</span><span><i class="cell lost" />not responding</span></div>
    }>
      {troubled > 0 && <p class="notice">{plural(troubled, 'partition')} without a leader or with a damaged replica</p>}
      <div class="grid-wrap" tabIndex={0} role="region" aria-label="Partitions and nodes">
        <table class="grid" aria-label="Partitions and nodes">
          <thead><tr><th scope="col"><span class="offscreen">Node</span></th>{partitions.map((o) => <th key={o.id} scope="col"><button type="button" class={chosen === o.id ? 'on' : ''} aria-pressed={chosen === o.id} aria-label={`Partition ${o.id}`} onClick={() => setChosen(chosen === o.id ? undefined : o.id)}>{o.id}</button></th>)}</tr></thead>
          <tbody>
            {nodes.map((n) => (
              <tr key={n.id}>
                <th scope="row">{n.name}</th>
                {partitions.map((o) => {
                  const r = o.replicas.find((c) => c.node === n.id)
                  const [kind, title] = cell(o, n, r)
                  return <td key={o.id} class={chosen === o.id ? 'on' : ''} title={`partition ${o.id} on ${n.name}: ${title}`}><i class={`cell ${kind}`} /><span class="offscreen">{title}</span></td>
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {p && <PartitionDetail p={p} nodes={nodes} />}
    </Section>
  )
}

function cell(p: Partition, n: ClusterNode, r: Replica | undefined): [string, string] {
  if (!r) return p.placed.includes(n.id) ? ['lost', 'should have a replica'] : ['none', 'no replica']
  if (r.quarantine) return ['bad', `quarantined: ${r.quarantine}`]
  if (p.leader === n.id) return ['leader', 'leads']
  if (!r.answers) return ['lost', 'does not respond']
  if (r.role === 'learner' || (r.lag_known && r.lag > 1000)) return ['behind', r.lag_known ? `${formatCount(r.lag)} entries behind` : 'has not responded to the leader yet']
  return ['voter', r.lag_known && r.lag > 0 ? `follows, ${formatCount(r.lag)} entries behind` : 'follows']
}

function PartitionDetail({ p, nodes }: { p: Partition; nodes: ClusterNode[] }) {
  const transfer = (to: ClusterNode): void => void ask({ title: `Let ${to.name} lead partition ${p.id}?`, action: 'Transfer', body: <p>Leadership moves from {nameOf(nodes, p.leader)} to {to.name}. Calls in progress continue; new ones wait some milliseconds.</p> }, async () => {
    await request(`/cluster/partitions/${p.id}/transfer?to=${segment(to.name)}`, { method: 'PATCH' })
    toast('ok', `${to.name} leads partition ${p.id}`)
    refreshAll()
  })
  return (
    <div class="partition-detail">
      <header><h3>Partition {p.id}</h3><span class="muted">term {p.term} · placement {p.placement_version}</span><span class="grow" />
        {p.replicas.length > 1 && <Menu label="Transfer" icon="transfer" small items={p.replicas.filter((r) => r.node !== p.leader && r.role === 'voter').map((r) => ({ title: nameOf(nodes, r.node), disabled: !r.answers, needs: 'administer' as const, run: () => transfer(nodes.find((n) => n.id === r.node)!) }))}>Transfer leadership</Menu>}
      </header>
      <table class="table small" aria-label={`Replicas of partition ${p.id}`}>
        <thead><tr><th scope="col">Node</th><th scope="col">Role</th><th scope="col" class="num">Applied</th><th scope="col" class="num">Committed</th><th scope="col" class="num">Snapshot</th><th scope="col" class="num">Behind</th><th scope="col">State</th></tr></thead>
        <tbody>{p.replicas.map((r) => (
          <tr key={r.node}>
            <td>{nameOf(nodes, r.node)}</td><td>{r.role}</td><td class="num">{r.answers ? formatCount(r.applied) : '–'}</td><td class="num">{r.answers ? formatCount(r.committed) : '–'}</td><td class="num">{r.answers ? formatCount(r.snapshot) : '–'}</td>
            <td class="num">{r.lag_known ? formatCount(r.lag) : '–'}</td><td>{r.quarantine ? <span class="bad-text">{r.quarantine}</span> : !r.answers ? 'does not respond' : r.caught_up || r.role === 'leader' ? 'current' : 'catching up'}</td>
          </tr>
        ))}</tbody>
      </table>
    </div>
  )
}

function Configure({ config: c, close }: { config: ClusterConfig; close: () => void }) {
  const [replication, setReplication] = useState(String(c.replication))
  const [error, setError] = useState('')
  const [busy, setBusy] = useState(false)
  const [refused, setRefused] = useState(false)
  const [force, setForce] = useState(false)
  const changed = replication !== String(c.replication)
  const survived = Math.max(0, Math.floor((Number(replication) - 1) / 2))
  return (
    <form onSubmit={(e) => {
      e.preventDefault()
      setBusy(true)
      request(`/cluster/config${force ? '?force=true' : ''}`, { method: 'PATCH', body: { replication: Number(replication) } }).then(() => {
        toast('ok', 'Replicas are being moved')
        refreshAll()
        close()
      }, (err: Error) => {
        setBusy(false)
        setError(withoutForce(err.message))
        setRefused(err instanceof APIError && err.status === 409)
      })
    }}>
      <DialogFrame title="Configuration of the cluster" close={close} actions={<><Button onClick={close}>Close</Button><Button kind="primary" type="submit" busy={busy} disabled={!changed || (refused && !force)}>Save</Button></>}>
        <Facts rows={[['Name', c.name], ['Id', <span class="mono">{c.id}</span>], ['Partitions', formatCount(c.num_partitions)], ['Flow control', c.flow_control ? 'on' : 'off'], ['Created', <Time at={c.provisioned_at} absolute />]]} />
        <Field label="Replicas of each partition" hint={survived === 0 ? 'No node can fail without an interruption.' : `${plural(survived, 'node')} can fail at a time, if there are ${replication} nodes.`}><input class="input" type="number" min="1" max="9" value={replication} onInput={(e) => { setReplication(e.currentTarget.value); setRefused(false); setError('') }} /></Field>
        {error && <p class="dialog-error" role="alert">{error}</p>}
        {refused && <Force label="Change it anyway." checked={force} onChange={setForce} />}
      </DialogFrame>
    </form>
  )
}

export { Icon }
