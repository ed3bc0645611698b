// Virtual objects and workflow runs that have state or are held.

import { useEffect, useState } from 'preact/hooks'
import { get, withQuery } from '../api/client.ts'
import type { InvocationPage, ObjectSummary, Service } from '../api/types.ts'
import { formatBytes, formatCount } from '../lib/format.ts'
import { optional, useResource } from '../resource.ts'
import { href, navigate, query, segment } from '../router.ts'
import { preview } from '../lib/payload.ts'
import { refusalOf } from '../session.ts'
import { Button, Elapsed, Empty, InvocationID, Loaded, PageHead, Status, Tabs, Time, resultOf, typeName } from '../ui/basic.tsx'
import { Table } from '../ui/table.tsx'
import { Pager, objectOf } from './common.tsx'
import { readState, type ObjectName } from './edit-state.tsx'

const pageSize = 100

/** Waiting invocations of a key with a scope are counted up to this number. */
const maxCounted = 1000

interface Page {
  objects: ObjectSummary[]
  next_cursor?: string
}

export function Objects() {
  const services = useResource('services', (s) => get<{ services: Service[] }>('/services', s), { every: 10_000, topics: ['deployments'] })
  const keyed = services.data?.services.filter((s) => s.ty !== 'Service') ?? []
  const wanted = query.value.get('service')
  const service = keyed.find((s) => s.name === wanted) ?? keyed[0]
  return (
    <>
      <PageHead title="Objects" summary="Virtual objects and workflow runs with their state, holder and queue" />
      {services.data && keyed.length === 0 && (
        <Empty title="No objects" icon="state">
          {services.data.services.length === 0
            ? <><p>Virtual objects and workflow runs appear here after their service is registered.</p><p><a href={href('/')}>First steps</a></p></>
            : <p>None of the registered services is a virtual object or a workflow.</p>}
        </Empty>
      )}
      {service && <Keys key={service.name} service={service} services={keyed} />}
    </>
  )
}

function Keys({ service, services }: { service: Service; services: Service[] }) {
  const cursor = query.value.get('cursor') ?? ''
  const prefix = query.value.get('prefix') ?? ''
  const scope = query.value.get('scope') ?? ''
  const [text, setText] = useState(prefix)
  useEffect(() => setText(prefix), [prefix])
  const params = { service: service.name, prefix, scope, cursor, limit: pageSize }
  const list = useResource(`objects:${JSON.stringify(params)}`, (s) => get<Page>(withQuery('/objects', params), s), { every: 5000, keep: true, topics: ['invocations'] })
  const scopes = useResource(`scopes:${service.name}`, (s) => optional('/services/{service}/scopes', () => get<{ scopes: string[] }>(`/services/${segment(service.name)}/scopes`, s)), { every: 15_000 })
  const known = scopes.data?.scopes ?? []
  const go = (changes: Record<string, string | undefined>): void => navigate(href('/objects', { service: service.name, scope: scope || undefined, ...changes }))
  const run = service.handlers.find((h) => h.ty === 'Workflow')?.name
  const [unfolded, setUnfolded] = useState<ReadonlySet<string>>(new Set())
  const readable = !refusalOf('payloads')
  const link = (o: { key: string }): string => href(`/objects/${segment(service.name)}/${segment(o.key)}`, scope ? { scope } : {})
  return (
    <>
      <div class="tabs-row">
        <Tabs label="Services" tabs={services.map((s) => ({ title: s.name, href: href('/objects', { service: s.name }), on: s.name === service.name, count: typeName(s.ty) }))} />
        <form class="find-form" onSubmit={(e) => {
          e.preventDefault()
          go({ prefix: text || undefined })
        }}>
          {(known.length > 0 || scope !== '') && (
            <select class="input small" aria-label="Scope" value={scope} onChange={(e) => go({ scope: e.currentTarget.value || undefined, prefix: text || undefined })}>
              <option value="">without a scope</option>
              {[...new Set([...known, ...(scope === '' ? [] : [scope])])].map((s) => <option key={s} value={s}>{s}</option>)}
            </select>
          )}
          <input class="input small" type="search" placeholder="Key starts with" aria-label="Key starts with" value={text} onInput={(e) => setText(e.currentTarget.value)} />
          <Button small type="submit">Find</Button>
          {text !== '' && <Button small onClick={() => navigate(link({ key: text }))}>Open this key</Button>}
        </form>
      </div>
      {run && prefix === '' && cursor === '' ? <Runs service={service.name} run={run} scope={scope} /> : <Loaded of={list} what="The objects could not be listed">{(page) => page.objects.length === 0
        ? <Empty title={prefix ? 'No key starts like this' : cursor ? 'No more keys' : 'No state yet'} icon="state"><p>{prefix || cursor ? <a href={href('/objects', { service: service.name, ...(scope ? { scope } : {}) })}>Show all</a> : `${service.name} has written no state${scope ? ' in this scope' : ''}, and none of its keys is in use.`}</p></Empty>
        : (
          <>
            <Table label="Objects" rows={page.objects} keyOf={(o) => o.key} hrefOf={link} dim={list.changing}
              detail={(o) => unfolded.has(o.key) && <StatePreview of={{ service: service.name, key: o.key, scope }} link={link(o)} />} columns={[
              ...(readable ? [{ id: 'unfold', title: <span class="offscreen">State</span>, class: 'fit', cell: (o: ObjectSummary) => o.state_entries > 0 && <Button small kind="ghost" icon={unfolded.has(o.key) ? 'down' : 'right'} expanded={unfolded.has(o.key)} label={`State of ${o.key}`} onClick={() => setUnfolded(new Set(unfolded.has(o.key) ? [...unfolded].filter((k) => k !== o.key) : [...unfolded, o.key]))} /> }] : []),
              { id: 'key', title: service.ty === 'Workflow' ? 'Workflow id' : 'Key', class: 'grow cut', cell: (o) => <a class="strong mono cut" href={link(o)}>{o.key === '' ? <span class="faint">empty key</span> : <bdi>{o.key}</bdi>}</a> },
              { id: 'entries', title: 'State entries', class: 'num fit', cell: (o) => formatCount(o.state_entries) },
              { id: 'bytes', title: 'Size', class: 'num fit', cell: (o) => formatBytes(o.state_bytes) },
              { id: 'holder', title: 'Held by', class: 'c-idcol', cell: (o) => (o.held_by ? <InvocationID id={o.held_by} /> : <span class="faint">free</span>) },
              { id: 'waiting', title: 'Waiting', class: 'num fit', cell: (o) => (o.waiting ? <a class="warn-text" href={href('/invocations', new URLSearchParams([['status', 'pending'], ['service', service.name], ['key', o.key], ...(scope ? [['scope', scope]] : [])]))}>{formatCount(o.waiting)}{scope && o.waiting >= maxCounted ? ' or more' : ''}</a> : <span class="faint">0</span>) },
            ]} />
            <Pager count={page.objects.length} noun="key" cursor={cursor} next={page.next_cursor} changing={list.changing} to={(cursor) => href('/objects', { service: service.name, scope: scope || undefined, prefix: prefix || undefined, cursor })} />
          </>
        )}</Loaded>}
    </>
  )
}

/** Entries of a preview. */
const previewed = 8

/** The first entries of the state, below the row of its key. */
function StatePreview({ of: name, link }: { of: ObjectName; link: string }) {
  const state = useResource(`state:${name.service}:${name.key}:${name.scope}`, (s) => readState(name, s), { every: 5000, topics: ['invocations'], atLeast: 2000 })
  return (
    <Loaded of={state} rows={2} what="The state could not be read">{(s) => (
      <ul class="state-preview-list">
        {s.values.slice(0, previewed).map((v) => <li key={v.key}><a href={`${link}${link.includes('?') ? '&' : '?'}entry=${encodeURIComponent(v.key)}`}><bdi class="mono strong">{v.key}</bdi></a><span class="c-arrow">=</span><span class="mono cut" dir="auto">{preview({ bytes: v.bytes, length: v.bytes.length }, 200)}</span></li>)}
        {s.values.length > previewed && <li><a href={link}>{formatCount(s.values.length - previewed)} more</a></li>}
      </ul>
    )}</Loaded>
  )
}

/** Runs of a workflow, the newest first. */
function Runs({ service, run, scope }: { service: string; run: string; scope: string }) {
  const cursor = query.value.get('runs') ?? ''
  const params = new URLSearchParams([['service', service], ['handler', run], ['limit', String(pageSize)], ...(scope ? [['scope', scope]] : []), ...(cursor ? [['cursor', cursor]] : [])])
  const list = useResource(`runs:${params.toString()}`, (s) => get<InvocationPage>(withQuery('/invocations', params), s), { every: 5000, keep: true, topics: ['invocations'] })
  return (
    <Loaded of={list} what="The runs could not be listed">{(page) => page.invocations.length === 0
      ? <Empty title={cursor ? 'No more runs' : 'No runs yet'} icon="state"><p>{cursor ? <a href={href('/objects', { service })}>Show the newest</a> : <a href={href(`/services/${segment(service)}`, { invoke: run })}>Start {service}</a>}</p></Empty>
      : (
        <>
          <Table label="Runs" rows={page.invocations} keyOf={(i) => i.id} hrefOf={objectOf} dim={list.changing} columns={[
            { id: 'status', title: 'Status', class: 'fit', cell: (i) => <Status status={i.status} result={resultOf(i)} note={(i.retry_count ?? 0) > 1 && i.status !== 'completed' ? `×${i.retry_count}` : undefined} /> },
            { id: 'key', title: 'Workflow id', class: 'grow cut', cell: (i) => <a class="strong mono cut" href={objectOf(i)}><bdi>{i.target_service_key}</bdi></a> },
            { id: 'id', title: 'Invocation', class: 'c-idcol', cell: (i) => <InvocationID id={i.id} /> },
            { id: 'created', title: 'Started', class: 'num fit', cell: (i) => <Time at={i.created_at} /> },
            { id: 'duration', title: 'Duration', class: 'num fit', cell: (i) => <Elapsed from={i.created_at} to={i.completed_at} /> },
          ]} />
          <Pager count={page.invocations.length} noun="run" cursor={cursor} next={page.next_cursor} changing={list.changing} to={(runs) => href('/objects', { service, scope: scope || undefined, runs })} />
        </>
      )}</Loaded>
  )
}
