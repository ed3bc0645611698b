// Event subscriptions and the Kafka clusters that they read from.

import { useState } from 'preact/hooks'
import { get, request, withQuery } from '../api/client.ts'
import type { KafkaCluster, StreamRecord, Subscription, TopicPartition } from '../api/types.ts'
import { formatBytes, formatCount, plural } from '../lib/format.ts'
import { formatDuration } from '../lib/time.ts'
import { refreshAll } from '../live.ts'
import { optional, useResource } from '../resource.ts'
import { href, segment, navigate, type Match } from '../router.ts'
import { Button, Command, Empty, Facts, Field, ID, Loaded, PageHead, Pill, Section, Status, Tabs, Time } from '../ui/basic.tsx'
import { ask, openDialog, DialogFrame, toast, toastError } from '../ui/overlay.tsx'
import { Table } from '../ui/table.tsx'
import { blockReasons } from '../lib/subscriptions.ts'
import { Incomplete, Notices, askPause } from './common.tsx'
import { FormButtons, useSubmission } from '../ui/form.tsx'
import { DeadLetters, RecordView } from './dead-letters.tsx'
import { createKafkaCluster, createSubscription, editKafkaCluster, editSubscription } from './event-forms.tsx'

export function Events({ params }: { params: Match }) {
  return params.id ? <One id={params.id} /> : <List />
}

export function KafkaClusters({ params }: { params: Match }) {
  return params.name ? <OneCluster name={params.name} /> : <Clusters />
}

const tabs = (on: 'subscriptions' | 'clusters') => (
  <Tabs label="Events" tabs={[
    { title: 'Subscriptions', href: href('/subscriptions'), on: on === 'subscriptions' },
    { title: 'Kafka clusters', href: href('/kafka-clusters'), on: on === 'clusters' },
  ]} />
)

/** Lag of the last minutes by subscription, as far as this page was open. */
const history = new Map<string, number[]>()
const historyLength = 60

function remember(list: readonly Subscription[]): void {
  for (const s of list) {
    if (s.lag_records === undefined) continue
    const points = history.get(s.id) ?? []
    points.push(s.lag_records)
    history.set(s.id, points.slice(-historyLength))
  }
}

function Sparkline({ id }: { id: string }) {
  const points = history.get(id) ?? []
  if (points.length < 2) return null
  const most = Math.max(1, ...points)
  const path = points.map((p, i) => `${i === 0 ? 'M' : 'L'}${((i / (historyLength - 1)) * 60).toFixed(1)} ${(15 - (p / most) * 14).toFixed(1)}`).join('')
  return <svg class="spark" width="60" height="16" viewBox="0 0 60 16" aria-hidden="true"><path d={path} fill="none" stroke="currentColor" stroke-width="1.2" /></svg>
}

const lagOf = (records: number | undefined, seconds: number | undefined): string =>
  records === undefined ? '–' : records === 0 ? '0' : `${formatCount(records)}${seconds ? ` · ${formatDuration(seconds * 1000)}` : ''}`

function Lag({ of: s }: { of: Subscription }) {
  return <span class="lag"><Sparkline id={s.id} /> {lagOf(s.lag_records, s.lag_seconds)}</span>
}

function List() {
  const list = useResource('subscriptions', (s) => optional('/subscriptions', async () => {
    const got = await get<{ subscriptions: Subscription[]; silent_nodes?: string[] }>('/subscriptions', s)
    remember(got.subscriptions)
    return got
  }), { every: 2000, topics: ['subscriptions'] })
  const clusters = useResource('kafka-clusters', (s) => optional('/kafka-clusters', () => get<{ clusters: KafkaCluster[] }>('/kafka-clusters', s)), { every: 10_000, topics: ['subscriptions'] })
  const noClusters = clusters.data && clusters.data.clusters.length === 0
  return (
    <>
      <PageHead title="Events" summary="Kafka topics whose records are delivered to handlers, each exactly once">
        {list.data && noClusters === false && <Button kind="primary" icon="plus" needs="deploy" onClick={() => createSubscription()}>Create subscription</Button>}
      </PageHead>
      {tabs('subscriptions')}
      <Loaded of={list} what="The subscriptions could not be listed">{(l) => l === null ? <Empty title="This server has no event subscriptions" icon="call" /> : l.subscriptions.length === 0 ? (
        <Empty title="No subscriptions" icon="call">
          <p>A subscription calls a handler with each record of a Kafka topic.{noClusters ? ' First add the Kafka cluster that has the topic.' : ''}</p>
          {noClusters
            ? <Button kind="primary" icon="plus" needs="deploy" onClick={createKafkaCluster}>Add a Kafka cluster</Button>
            : <Command text="platform subscriptions create kafka://<cluster>/<topic> service://<service>/<handler>" />}
        </Empty>
      ) : (
        <>
          <Incomplete without={l.silent_nodes} />
          <SubscriptionTable list={l.subscriptions} />
        </>
      )}</Loaded>
    </>
  )
}

function SubscriptionTable({ list }: { list: Subscription[] }) {
  return (
    <Table label="Subscriptions" rows={list} keyOf={(s) => s.id} hrefOf={(s) => href(`/subscriptions/${segment(s.id)}`)} columns={[
      { id: 'state', title: 'State', class: 'fit', cell: (s) => <Status status={s.state} note={s.reason?.replaceAll('_', ' ')} /> },
      { id: 'source', title: 'Source', class: 'grow', cell: (s) => <a class="strong" href={href(`/subscriptions/${segment(s.id)}`)}><bdi>{s.source}</bdi></a> },
      { id: 'sink', title: 'Handler', class: 'cut', cell: (s) => <bdi>{s.sink.replace('service://', '')}</bdi> },
      { id: 'lag', title: 'Lag', class: 'num fit', cell: (s) => <Lag of={s} /> },
      { id: 'partitions', title: 'Partitions', class: 'num fit', cell: (s) => formatCount(s.topic_partitions) },
      { id: 'blocked', title: 'Blocked', class: 'num fit', cell: (s) => (s.blocked > 0 ? <b class="bad-text">{formatCount(s.blocked)}</b> : <span class="faint">0</span>) },
      { id: 'id', title: 'Id', class: 'c-idcol', cell: (s) => <ID id={s.id} /> },
    ]} />
  )
}

function One({ id }: { id: string }) {
  const path = `/subscriptions/${segment(id)}`
  const subscription = useResource(`subscription:${id}`, async (s) => {
    const got = await get<Subscription>(path, s)
    remember([got])
    return got
  }, { every: 1000, topics: ['subscriptions'] })
  return (
    <>
      <div class="crumbs"><a href={href('/subscriptions')}>Events</a></div>
      <Loaded of={subscription} what="The subscription could not be read">{(s) => (
        <>
          <PageHead title={<bdi>{s.source}</bdi>} summary={<><Status status={s.state} note={s.reason?.replaceAll('_', ' ')} /> · <bdi>{s.sink}</bdi></>}>
            <Actions of={s} path={path} />
          </PageHead>
          {s.message && (s.state === 'error' || s.state === 'orphaned' || s.state === 'blocked' ? <section class="failure-card" aria-label="Error"><p class="failure-message">{s.message}</p></section> : <p class="muted">{s.message}</p>)}
          <Incomplete without={s.silent_nodes} />
          <Notices list={s.info} />
          <BlockedRecords of={s} path={path} />
          {s.dead_letters > 0 && <DeadLetters of={s} path={`${path}/dead-letters`} />}
          <Section title="Topic partitions" count={formatCount(s.topic_partitions)} flush>
            {(s.partitions ?? []).length === 0 ? <Empty title="No topic partitions yet"><p>{s.start.resolved ? 'No node reads from this subscription at the moment.' : 'The brokers have not been reached yet, so the start position is not known.'}</p></Empty> : <Partitions list={s.partitions ?? []} />}
          </Section>
          <Section title="Settings"><Settings of={s} /></Section>
        </>
      )}</Loaded>
    </>
  )
}

function Settings({ of: s }: { of: Subscription }) {
  return (
    <Facts rows={[
      ['Id', <ID id={s.id} />], ['Lag', <Lag of={s} />], s.since ? ['State since', <Time at={s.since} />] : null,
      s.paused ? ['Paused', <><Time at={s.paused.at} /> by {s.paused.by}{s.paused.reason ? `: ${s.paused.reason}` : ''}</>] : null,
      ['Start', `${s.start.from}${s.start.timestamp ? ` ${s.start.timestamp}` : ''}${s.start.otherwise ? `, otherwise ${s.start.otherwise}` : ''}${s.start.resolved ? '' : ' (not resolved yet)'}`],
      ['Incarnation', s.incarnation], ['Ordering', s.ordering], ['On error', `${s.on_error}${s.dead_letter_topic ? `, to ${s.dead_letter_topic}` : s.on_error === 'dead-letter' ? ', kept by the server' : ''}`], ['Tombstones', s.tombstones],
      ['Topic created again', s.on_recreate],
      ['Headers', s.headers.length === 0 ? 'none' : s.headers.join(', ')], s.scope ? ['Scope', <span class="mono">{s.scope}</span>] : null, s.limit_key ? ['Limit key', <span class="mono">{s.limit_key}</span>] : null,
      ['In flight at most', formatCount(s.max_in_flight)], ['Options', <Properties values={s.options} />], ['Created', <Time at={s.created_at} />],
      ['Invocations', <a href={href('/invocations', { service: s.sink.replace('service://', '').split('/')[0] })}>of this service</a>],
    ]} />
  )
}

function Properties({ values }: { values: Record<string, string> }) {
  return <span class="mono wrap">{Object.keys(values).sort().map((name) => <div key={name}>{name}={values[name]}</div>)}</span>
}

function Partitions({ list }: { list: TopicPartition[] }) {
  return (
    <Table label="Topic partitions" rows={list} keyOf={(p) => `${p.topic}/${p.partition}`} columns={[
      { id: 'partition', title: 'Partition', class: 'fit', cell: (p) => <bdi>{p.topic}/{p.partition}</bdi> },
      { id: 'state', title: 'State', class: 'fit', cell: (p) => <Status status={p.state} note={p.reason?.replaceAll('_', ' ')} /> },
      { id: 'position', title: 'Position', class: 'num fit', cell: (p) => formatCount(p.position) },
      { id: 'end', title: 'End', class: 'num fit', cell: (p) => (p.end_offset === undefined ? '–' : formatCount(p.end_offset)) },
      { id: 'lag', title: 'Lag', class: 'num fit', cell: (p) => lagOf(p.lag_records, p.lag_seconds) },
      { id: 'flight', title: 'In flight', class: 'num fit', cell: (p) => formatCount(p.in_flight) },
      { id: 'out', title: 'Left out', class: 'num fit', cell: (p) => formatCount(p.skipped + p.dead_lettered) },
      { id: 'node', title: 'Node', class: 'num fit', cell: (p) => (p.node ?? '–') },
      { id: 'error', title: 'Cause', class: 'grow', cell: cause },
    ]} />
  )
}

/** Why a topic partition is in its state; if it reads, the error that it had before. */
function cause(p: TopicPartition) {
  const now = p.blocked_record?.message ?? p.message
  if (now || !p.last_error) return now ?? ''
  return <span class="muted">{p.last_error_at ? <Time at={p.last_error_at} /> : 'before'}: {p.last_error}</span>
}

/** Why records block, what can be done, and the actions. */
function BlockedRecords({ of: s, path }: { of: Subscription; path: string }) {
  const blocked = (s.partitions ?? []).filter((p) => p.blocked_record)
  if (blocked.length === 0) return null
  return (
    <Section title="Blocked by a record" count={formatCount(blocked.length)} flush>
      <p class="section-note">Later records of these topic partitions wait. Other topic partitions continue.</p>
      <ul class="blocked-records" aria-label="Blocked by a record">{blocked.map((p) => <BlockedRecord key={`${p.topic}/${p.partition}`} of={p} path={path} />)}</ul>
    </Section>
  )
}

function BlockedRecord({ of: p, path }: { of: TopicPartition; path: string }) {
  const r = p.blocked_record!
  const [why, remedy] = blockReasons[r.reason] ?? ['', '']
  return (
    <li>
      <div class="blocked-what">
        <p><bdi class="strong">{p.topic}/{p.partition}</bdi> at offset <span class="num">{formatCount(r.offset)}</span> <Pill tone="bad" title={r.reason}>{r.reason.replaceAll('_', ' ')}</Pill></p>
        {why && <p>{why} <span class="muted">{remedy}</span></p>}
        {r.message && r.message !== why && <p class="mono wrap muted">{r.message}</p>}
        <p class="muted">{formatBytes(r.key_bytes + r.value_bytes)}{r.timestamp ? <> · produced <Time at={r.timestamp} /></> : null}{p.lag_records && p.lag_records > 1 ? ` · ${plural(p.lag_records - 1, 'record')} behind it` : ''}</p>
      </div>
      <RecordActions path={path} of={p} />
    </li>
  )
}

function RecordActions({ path, of: p }: { path: string; of: TopicPartition }) {
  const offset = p.blocked_record!.offset
  const record = `${path}/records/${segment(p.topic)}/${p.partition}/${offset}`
  const name = `offset ${offset} of ${p.topic}/${p.partition}`
  const run = async (operation: 'retry' | 'skip'): Promise<void> => {
    await request(`${record}/${operation}`, { method: 'POST' })
    toast('ok', operation === 'retry' ? `Retrying ${name}` : `Skipped ${name}`)
    refreshAll()
  }
  return (
    <span class="row-actions">
      <Button small kind="ghost" needs="payloads" onClick={() => { get<StreamRecord>(record).then((r) => void openDialog(`Record at ${name}`, (close) => <RecordView record={r} close={close} />, true), (err: unknown) => toastError(err)) }}>Show</Button>
      <Button small kind="ghost" icon="restart" needs="operate" onClick={() => { run('retry').catch((err: unknown) => toastError(err)) }}>Retry</Button>
      <Button small kind="ghost" needs="operate" onClick={() => void ask({ title: 'Skip this record?', action: 'Skip', danger: true, body: <p>The record at {name} is not delivered, and the subscription continues behind it.</p> }, () => run('skip'))}>Skip</Button>
    </span>
  )
}

function Actions({ of: s, path }: { of: Subscription; path: string }) {
  const change = async (operation: string, body?: unknown): Promise<void> => {
    await request(path + operation, body === undefined ? { method: 'POST' } : { method: 'POST', body })
    refreshAll()
  }
  const draining = s.state === 'draining'
  return (
    <>
      {s.paused ? <Button kind="primary" icon="play" needs="operate" disabled={draining} onClick={() => { change('/resume').then(() => toast('ok', 'Resumed'), (err: unknown) => toastError(err)) }}>Resume</Button>
        : <Button icon="pause" needs="operate" disabled={draining} onClick={() => askPause('subscription', 'No more records are fetched; the backlog stays in Kafka.', async (reason) => { await change(withQuery('/pause', { reason })); toast('ok', 'Paused') })}>Pause</Button>}
      <Button icon="transfer" needs="operate" disabled={draining} onClick={() => void openDialog('Change the position', (close) => <SeekForm of={s} close={close} run={async (start) => { await change('/seek?restart=true', { start }); toast('ok', 'Position changed') }} />)}>Seek</Button>
      <Button icon="edit" needs="deploy" disabled={draining} onClick={() => editSubscription(s)}>Edit</Button>
      <Button icon="trash" needs="deploy" disabled={draining} onClick={() => void ask({
        title: 'Delete this subscription?', action: 'Delete', danger: true,
        body: <p>Records in flight are delivered first. Invocations continue; the position is forgotten.</p>,
      }, async () => {
        await request(path, { method: 'DELETE' })
        toast('ok', 'The subscription is being deleted')
        navigate(href('/subscriptions'))
        refreshAll()
      })}>Delete</Button>
    </>
  )
}

function SeekForm({ of: s, close, run }: { of: Subscription; close: () => void; run: (start: unknown) => Promise<void> }) {
  const [to, setTo] = useState('earliest')
  const [at, setAt] = useState('')
  const form = useSubmission(close, () => {
    const time = new Date(at)
    if (to !== 'timestamp') return run(to)
    return Number.isNaN(time.getTime()) ? Promise.reject(new Error('Enter a time')) : run({ timestamp: time.toISOString() })
  })
  return (
    <form onSubmit={form.submit}>
      <DialogFrame title="Change the position" close={close} actions={<FormButtons close={close} action="Change" busy={form.busy} />}>
        <p>Records after the new position are delivered again, even if they were delivered before. This concerns {plural(s.topic_partitions, 'topic partition')}.</p>
        <Field label="Continue with">
          <select class="input" value={to} onChange={(e) => setTo(e.currentTarget.value)}>
            <option value="earliest">the oldest records</option>
            <option value="latest">new records only</option>
            <option value="timestamp">records from a time on</option>
            <option value="group">the committed offsets of the group</option>
          </select>
        </Field>
        {to === 'timestamp' && <Field label="Time" hint="In the time zone of this browser."><input class="input" type="datetime-local" step="1" value={at} onInput={(e) => setAt(e.currentTarget.value)} /></Field>}
        {form.error && <p class="dialog-error" role="alert">{form.error.message}</p>}
      </DialogFrame>
    </form>
  )
}

const brokersOf = (c: KafkaCluster): string => c.properties['bootstrap.servers'] ?? c.properties['metadata.broker.list'] ?? ''

function Clusters() {
  const list = useResource('kafka-clusters', (s) => optional('/kafka-clusters', () => get<{ clusters: KafkaCluster[] }>('/kafka-clusters', s)), { every: 5000, topics: ['subscriptions'] })
  return (
    <>
      <PageHead title="Events" summary="Kafka clusters that subscriptions read from">
        {list.data && <Button kind="primary" icon="plus" needs="deploy" onClick={createKafkaCluster}>Add Kafka cluster</Button>}
      </PageHead>
      {tabs('clusters')}
      <Loaded of={list} what="The Kafka clusters could not be listed">{(l) => l === null || l.clusters.length === 0 ? (
        <Empty title={l === null ? 'This server has no event subscriptions' : 'No Kafka clusters'} icon="cluster">{l !== null && <><p>Add the addresses of the brokers. Subscriptions then read from its topics.</p><Command text="platform kafka-clusters create main bootstrap.servers=127.0.0.1:9092" /></>}</Empty>
      ) : (
        <Table label="Kafka clusters" rows={l.clusters} keyOf={(c) => c.name} hrefOf={(c) => href(`/kafka-clusters/${segment(c.name)}`)} columns={[
          { id: 'cluster', title: 'Name', class: 'fit', cell: (c) => <a class="strong" href={href(`/kafka-clusters/${segment(c.name)}`)}>{c.name}</a> },
          { id: 'brokers', title: 'Brokers', class: 'grow', cell: (c) => <span class="mono">{brokersOf(c)}</span> },
          { id: 'origin', title: 'Defined in', class: 'fit', cell: (c) => (c.static ? 'configuration' : 'admin API') },
          { id: 'created', title: 'Created', class: 'num fit', cell: (c) => (c.static ? '–' : <Time at={c.created_at} />) },
        ]} />
      )}</Loaded>
    </>
  )
}

function OneCluster({ name }: { name: string }) {
  const path = `/kafka-clusters/${segment(name)}`
  const cluster = useResource(`kafka-cluster:${name}`, (s) => get<KafkaCluster>(withQuery(path, { include_subscriptions: true }), s), { every: 5000, topics: ['subscriptions'] })
  return (
    <>
      <div class="crumbs"><a href={href('/kafka-clusters')}>Kafka clusters</a></div>
      <Loaded of={cluster} what="The Kafka cluster could not be read">{(c) => (
        <>
          <PageHead title={c.name} summary={c.static ? 'Defined by the configuration of the server' : 'Kafka cluster'}>
            <Button icon="plus" needs="deploy" onClick={() => createSubscription(c.name)}>Create subscription</Button>
            {!c.static && <Button icon="edit" needs="deploy" onClick={() => editKafkaCluster(c)}>Edit</Button>}
            {!c.static && <Button icon="trash" needs="deploy" onClick={() => void ask({ title: 'Delete this Kafka cluster?', action: 'Delete', danger: true, body: <p>{(c.subscriptions ?? []).length > 0 ? 'Subscriptions read from it: delete them first.' : 'No subscription reads from it.'}</p> }, async () => {
              await request(path, { method: 'DELETE' })
              toast('ok', 'The Kafka cluster was deleted')
              navigate(href('/kafka-clusters'))
            })}>Delete</Button>}
          </PageHead>
          <Notices list={c.info} />
          <Section title="Properties"><Properties values={c.properties} /></Section>
          <Section title="Subscriptions" count={formatCount((c.subscriptions ?? []).length)} flush>
            {(c.subscriptions ?? []).length === 0 ? <Empty title="No subscriptions" /> : <SubscriptionTable list={c.subscriptions ?? []} />}
          </Section>
        </>
      )}</Loaded>
    </>
  )
}

