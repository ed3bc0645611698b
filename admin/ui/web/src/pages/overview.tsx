// The landing page: does work flow, what fails, is the cluster well.

import { useState } from 'preact/hooks'
import { clusterHealth, get, withQuery } from '../api/client.ts'
import type { ClusterHealth, Counts, Deployment, FailureGroup, InvocationPage, Service, Stats } from '../api/types.ts'
import { statuses } from '../lib/filters.ts'
import { formatCompact, formatCount, plural } from '../lib/format.ts'
import { groupProblems } from '../lib/problems.ts'
import { formatDuration, parseTime } from '../lib/time.ts'
import { optional, useResource } from '../resource.ts'
import { href, segment } from '../router.ts'
import { limited } from '../session.ts'
import { Button, Command, DeploymentID, Loaded, PageHead, Pill, Section, Segmented, Skeleton, Status, Target, Time, resultOf, statusLook, now, Elapsed } from '../ui/basic.tsx'
import { Chart, type Mark, type Series } from '../ui/chart.tsx'
import { Icon, StatusShape } from '../ui/icons.tsx'
import { Table } from '../ui/table.tsx'
import { byName, countsOf } from './common.tsx'
import { FailureTable } from './failures.tsx'
import { withMore } from '../more.ts'

type Range = '15m' | '1h' | '3h'
const steps: Record<Range, string> = { '15m': '10s', '1h': '30s', '3h': '60s' }

export function Overview() {
  const [picked, setRange] = useState<Range>()
  const services = useResource('services', (s) => get<{ services: Service[] }>('/services', s), { every: 2000, topics: ['deployments'] })
  const whole = !limited() // others may not read these routes
  const deployments = useResource(whole ? 'deployments' : undefined, (s) => get<{ deployments: Deployment[] }>('/deployments', s), { every: 2000, topics: ['deployments'] })
  const health = useResource(whole ? 'health' : undefined, clusterHealth, { every: 5000, topics: ['cluster'] })
  const counts = useResource('counts', (s) => optional('/invocations/counts', () => get<Counts>('/invocations/counts', s)), { every: 5000, atLeast: 2000, topics: ['overview'] })
  const failures = useResource('failures-nav', (s) => optional('/failures', () => get<{ groups: FailureGroup[] }>('/failures?muted=false', s)), { every: 5000, atLeast: 2000, topics: ['failures'] })
  // A server that has just started has nothing to show of the last hour.
  const range = picked ?? (startedWithin(health.data, 15 * 60_000) ? '15m' : '1h')
  const stats = useResource(whole ? `stats:${range}` : undefined, (s) => optional('/stats', () => get<Stats>(withQuery('/stats', { range, step: steps[range] }), s)), { every: 10_000, atLeast: 5000, topics: ['overview'], keep: true })
  const recent = useResource('recent', (s) => get<InvocationPage>('/invocations?limit=12', s), { every: 3000, atLeast: 2000, topics: ['invocations'] })
  const none = services.data !== undefined && services.data.services.length === 0
  const h = health.data
  const c = counts.data
  return (
    <>
      <PageHead title="Overview" summary={h ? `${h.cluster_name} · ${plural(h.nodes?.length ?? 1, 'node')} · ${plural(services.data?.services.length ?? 0, 'service')}` : ' '}>
        {stats.data && !none && <Segmented label="Range" value={range} onChange={setRange} options={[['15m', '15 min'], ['1h', '1 h'], ['3h', '3 h']]} />}
        <Button icon="plus" needs="deploy" kind={none ? 'primary' : 'plain'} onClick={() => withMore((m) => m.register())}>Register deployment</Button>
      </PageHead>
      {none && <FirstSteps />}
      {!none && services.data && (recent.data?.invocations.length ?? 1) === 0 && <FirstCall services={services.data.services} />}
      {h && h.status !== 'healthy' && (
        <section class={`health-card ${h.status}`}>
          <span class="why-shape"><Icon name="alert" /></span>
          <div><h2>The cluster is {h.status}</h2><ul>{groupProblems(h.problems ?? [h.message ?? '']).map((p) => <li key={p}>{p}</li>)}</ul></div>
          <a class="button plain" href={href('/cluster')}><span>Cluster</span></a>
        </section>
      )}
      {failures.data && failures.data.groups.length > 0 && (
        <Section title="Latest failures" count={formatCount(failures.data.groups.length)} flush actions={<a class="link" href={href('/failures')}>All failures</a>}>
          <FailureTable groups={failures.data.groups.slice(0, 5)} />
        </Section>
      )}
      {c && c.total > 0 && <Tiles counts={c} />}
      {stats.data && !none && <Charts stats={stats.data} marks={marksOf(deployments.data?.deployments)} />}
      {!none && services.data && services.data.services.length > 0 && <PerService services={services.data.services} counts={c ?? undefined} stats={stats.data ?? undefined} range={range} />}
      <NodesStrip health={h} />
      {!none && (
        <div class={whole ? 'split wide-left' : ''}>
          <Section title="Latest invocations" flush actions={<a class="link" href={href('/invocations')}>All invocations</a>}>
            <Loaded of={recent} rows={8} what="The invocations could not be listed">{(page) => page.invocations.length === 0 ? <p class="journal-empty">None yet.</p> : (
              <Table label="Latest invocations" rows={page.invocations} keyOf={(i) => i.id} hrefOf={(i) => href(`/invocations/${segment(i.id)}`)} columns={[
                { id: 'status', title: 'Status', class: 'fit', cell: (i) => <Status status={i.status} result={resultOf(i)} /> },
                { id: 'target', title: 'Target', class: 'fill', cell: (i) => <Target service={i.target_service_name} name={i.target_service_ty === 'service' ? undefined : i.target_service_key ?? ''} handler={i.target_handler_name} link={href(`/invocations/${segment(i.id)}`)} /> },
                { id: 'created', title: 'Created', class: 'fit num', cell: (i) => <Time at={i.created_at} /> },
                { id: 'duration', title: 'Duration', class: 'fit num', cell: (i) => (i.status === 'scheduled' ? <Time at={i.scheduled_start_at} /> : <Elapsed from={i.created_at} to={i.completed_at} />) },
              ]} />
            )}</Loaded>
          </Section>
          {whole && <Section title="Deployments" flush actions={<a class="link" href={href('/deployments')}>All</a>}>
            <Loaded of={deployments} rows={4}>{(d) => (
              <ul class="feed">
                {[...d.deployments].reverse().slice(0, 6).map((o) => (
                  <li key={o.id}>
                    <div><a class="mono strong cut" href={href(`/deployments/${segment(o.id)}`)}>{o.uri ?? o.arn}</a><span class="muted"><Time at={o.created_at} /></span></div>
                    <p class="muted cut">{o.services.map((s) => s.name).join(', ')}</p>
                  </li>
                ))}
              </ul>
            )}</Loaded>
          </Section>}
        </div>
      )}
      {!services.data && !services.error && <Skeleton rows={8} />}
    </>
  )
}

function startedWithin(h: ClusterHealth | undefined, ms: number): boolean {
  const starts = (h?.nodes ?? []).flatMap((n) => parseTime(n.started_at) ?? [])
  return starts.length > 0 && Math.min(...starts) > now.peek() - ms
}

/** Registrations, for the time axis of charts. */
export const marksOf = (deployments: readonly Deployment[] | undefined): Mark[] => (deployments ?? []).flatMap((d) => {
  const at = parseTime(d.created_at)
  return at === undefined ? [] : [{ at, title: d.uri ?? d.arn ?? d.id }]
})

/** Counts of statuses; each leads to its list. */
function Tiles({ counts: c }: { counts: Counts }) {
  const results: Record<string, number> = { success: (c.by_status.completed ?? 0) - sum(Object.values(c.by_result ?? {})), ...c.by_result }
  const stopped = (results.cancelled ?? 0) + (results.killed ?? 0)
  return (
    <nav class="tiles" aria-label="Invocations by status">
      {statuses.filter((s) => s !== 'completed' && s !== 'ready').map((s) => {
        const look = statusLook(s)
        const n = c.by_status[s] ?? 0
        return <a key={s} class={`tile ${n > 0 ? look.tone : 'zero'}`} href={href('/invocations', { status: s })}><b class="num">{formatCompact(n)}</b><span><StatusShape shape={look.shape} />{look.title}</span></a>
      })}
      {(['success', 'failure'] as const).map((r) => {
        const look = statusLook(r)
        const n = Math.max(0, results[r] ?? 0)
        return <a key={r} class={`tile ${n > 0 ? look.tone : 'zero'}`} href={href('/invocations', { result: r })}><b class="num">{formatCompact(n)}</b><span><StatusShape shape={look.shape} />{look.title}</span></a>
      })}
      {stopped > 0 && <a class="tile idle" href={href('/invocations', new URLSearchParams([['result', 'cancelled'], ['result', 'killed']]))}><b class="num">{formatCompact(stopped)}</b><span><StatusShape shape="none" />Stopped</span></a>}
    </nav>
  )
}

/** The services with most failures, then with most work, in the range of the charts. */
function PerService({ services, counts, stats, range }: { services: Service[]; counts: Counts | undefined; stats: Stats | undefined; range: Range }) {
  const rows = services.map((s) => {
    const series = stats?.services?.[s.name] ?? {}
    const c = countsOf(counts, s.name)
    return { name: s.name, type: s.ty, started: sum(series.started), failed: sum(series.failed), cancelled: sum(series.cancelled), retries: sum(series.retries), p99: lastOf(series.latency_p99_ms), unfinished: c.unfinished, failing: c.failing, spark: series.started ?? [] }
  }).sort((a, b) => b.failing - a.failing || b.failed - a.failed || b.started - a.started || a.name.localeCompare(b.name))
  const shown = rows.slice(0, 8)
  return (
    <Section title="Services" count={formatCount(rows.length)} flush actions={<a class="link" href={href('/services')}>All services</a>}>
      <Table label="Services" rows={shown} keyOf={(r) => r.name} hrefOf={(r) => href(`/services/${segment(r.name)}`)} columns={[
        { id: 'name', title: 'Service', class: 'fill', cell: (r) => <a class="strong" href={href(`/services/${segment(r.name)}`)}>{r.name}</a> },
        { id: 'spark', title: `Started, ${range}`, class: 'fit', cell: (r) => <Spark values={r.spark} /> },
        { id: 'started', title: 'Started', class: 'num fit', cell: (r) => zero(r.started) },
        { id: 'failed', title: 'Failed', class: 'num fit', cell: (r) => (r.failed > 0 ? <b class="bad-text">{formatCompact(r.failed)}</b> : zero(0)) },
        ...(rows.some((r) => r.cancelled > 0) ? [{ id: 'cancelled', title: 'Cancelled', class: 'num fit', cell: (r: (typeof rows)[number]) => zero(r.cancelled) }] : []),
        { id: 'retries', title: 'Retries', class: 'num fit', cell: (r) => (r.retries > 0 ? <span class="warn-text">{formatCompact(r.retries)}</span> : zero(0)) },
        { id: 'p99', title: 'Latency p99', class: 'num fit', cell: (r) => (r.p99 === undefined ? <span class="faint">–</span> : formatDuration(r.p99)) },
        { id: 'unfinished', title: 'Unfinished', class: 'num fit', cell: (r) => (counts ? zero(r.unfinished) : unknown) },
        { id: 'failing', title: 'Failing now', class: 'num fit', cell: (r) => (!counts ? unknown : r.failing > 0 ? <a class="bad-text" href={href('/invocations', new URLSearchParams([['status', 'backing-off'], ['status', 'paused'], ['service', r.name]]))}>{formatCompact(r.failing)}</a> : zero(0)) },
      ]} />
    </Section>
  )
}

const unknown = <span class="faint">–</span>
const zero = (n: number) => (n > 0 ? formatCompact(n) : <span class="faint">0</span>)
const sum = (values: readonly (number | null)[] | undefined): number => (values ?? []).reduce<number>((n, v) => n + (v ?? 0), 0)
const lastOf = (values: readonly (number | null)[] | undefined): number | undefined => values?.findLast((v) => v !== null) ?? undefined

/** A line without axes; the numbers are in the columns beside it. */
function Spark({ values }: { values: readonly (number | null)[] }) {
  const [w, h] = [96, 20]
  const top = Math.max(1, ...values.map((v) => v ?? 0))
  const points = values.map((v, i) => `${((i / Math.max(1, values.length - 1)) * w).toFixed(1)},${(h - 1 - ((v ?? 0) / top) * (h - 3)).toFixed(1)}`)
  return <svg class="spark" width={w} height={h} viewBox={`0 0 ${w} ${h}`} aria-hidden="true">{points.length > 1 && <polyline points={points.join(' ')} />}</svg>
}

export function Charts({ stats, marks }: { stats: Stats; marks?: Mark[] }) {
  const from = parseTime(stats.from) ?? 0
  const length = Math.max(0, ...Object.values(stats.series).map((v) => v.length))
  const times = Array.from({ length }, (_, i) => from + i * stats.step_ms)
  const perSecond = (v: (number | null)[] | undefined): (number | null)[] => (v ?? []).map((n) => (n === null ? null : (n * 1000) / stats.step_ms))
  const of = (name: string): (number | null)[] => stats.series[name] ?? []
  const rate = (n: number): string => (n > 0 && n < 0.1 ? n.toFixed(2) : formatCompact(n))
  const charts: { title: string; unit?: string; series: Series[]; format: (n: number) => string }[] = [
    { title: 'Throughput', unit: 'per s', format: rate, series: [{ title: 'started', color: '--busy', values: perSecond(of('started')), fill: false }, { title: 'succeeded', color: '--ok', values: perSecond(of('succeeded')) }] },
    { title: 'Failures', unit: 'per s', format: rate, series: [{ title: 'failed', color: '--bad', values: perSecond(of('failed')) }, { title: 'cancelled', color: '--muted', values: perSecond(of('cancelled')), fill: false }, { title: 'retries', color: '--warn', values: perSecond(of('retries')), fill: false }] },
    { title: 'Latency', format: formatDuration, series: [{ title: 'p50', color: '--busy', values: of('latency_p50_ms'), connect: true }, { title: 'p99', color: '--warn', values: of('latency_p99_ms'), fill: false, connect: true }] },
    { title: 'In flight', format: formatCompact, series: [{ title: 'in flight', color: '--busy', values: of('in_flight') }, { title: 'waiting for a slot', color: '--muted', values: of('backlog'), fill: false }] },
  ]
  return <div class="charts">{charts.map((c) => <Chart key={c.title} times={times} {...c} {...(marks ? { marks } : {})} />)}</div>
}

function NodesStrip({ health: h }: { health: ClusterHealth | undefined }) {
  if (!h?.nodes || h.nodes.length === 0) return null
  const partitions = h.partitions ?? []
  const leaderless = partitions.filter((p) => !p.leader).length
  return (
    <a class="strip" href={href('/cluster')}>
      {byName(h.nodes).map((n) => (
        <span key={n.id} class={`strip-node ${n.state === 'alive' ? (n.draining ? 'warn' : 'ok') : 'bad'}`}>
          <StatusShape shape={n.state === 'alive' ? (n.draining ? 'pause' : 'ok') : 'fail'} />
          <b>{n.name}</b><span class="muted">leads {n.leaders}</span>
        </span>
      ))}
      <span class="grow" />
      {partitions.length > 0 && <span class="muted num">{leaderless > 0 ? <b class="bad-text">{leaderless} of {partitions.length} partitions without a leader</b> : `${partitions.length} partitions, all with a leader`}</span>}
    </a>
  )
}

const sdks: [string, string, string][] = [
  ['TypeScript', 'npx', 'npm run dev'],
  ['Go', 'go', 'go run .'],
  ['Python', 'python', 'hypercorn service:app --bind 127.0.0.1:9080'],
  ['Java', 'java', './gradlew run'],
  ['Rust', 'rust', 'cargo run'],
]

/** What to do on an empty server. The page notices the first deployment by itself. */
function FirstSteps() {
  const [sdk, setSDK] = useState('TypeScript')
  return (
    <section class="first" aria-label="First steps">
      <h2>Run your first durable handler</h2>
      <ol>
        <li>
          <h3>Start a service</h3>
          <p class="muted">Handlers are ordinary functions in your own process. The sample needs nothing else:</p>
          <Command text="platform sample --listen 127.0.0.1:9080" />
          <p class="muted">or your own, with an SDK that listens on port 9080:</p>
          <Segmented label="SDK" value={sdk} onChange={setSDK} options={sdks.map(([name]) => [name, name] as const)} />
          <Command text={sdks.find(([name]) => name === sdk)![2]} />
        </li>
        <li>
          <h3>Register it</h3>
          <p class="muted">The server asks the endpoint for its services.</p>
          <div class="invoke-row"><Button kind="primary" icon="plus" needs="deploy" onClick={() => withMore((m) => m.register('http://localhost:9080'))}>Register localhost:9080</Button><span class="muted">or</span></div>
          <Command text="platform deployments register localhost:9080" />
        </li>
        <li>
          <h3>Call it</h3>
          <p class="muted">This page then offers a form for each handler, and shows each call with its steps.</p>
          <p class="muted"><i class="pulse" aria-hidden="true" /> Waiting for the first deployment. This page updates automatically.</p>
        </li>
      </ol>
    </section>
  )
}

function FirstCall({ services }: { services: Service[] }) {
  const s = services.find((o) => o.public && o.handlers.length > 0)
  if (!s) return null
  return (
    <section class="first done" aria-label="First call">
      <h2><StatusShape shape="ok" size={16} /> {plural(services.length, 'service')} registered</h2>
      <p class="muted">Make the first call:</p>
      <div class="invoke-row">
        {services.filter((o) => o.public).slice(0, 3).flatMap((o) => o.handlers.filter((x) => x.public).slice(0, 2).map((x) => (
          <a key={`${o.name}/${x.name}`} class="button primary" href={href(`/services/${segment(o.name)}`, { invoke: x.name })}><Icon name="play" /><span>{o.name}/{x.name}</span></a>
        )))}
      </div>
    </section>
  )
}

export { DeploymentID, Pill }
