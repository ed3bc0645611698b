// Virtual objects and workflow runs that have state or are held.

import { useState } from 'preact/hooks'
import { get, withQuery } from '../api/client.ts'
import type { ObjectSummary, Service } from '../api/types.ts'
import { formatBytes, formatCount } from '../lib/format.ts'
import { optional, useResource } from '../resource.ts'
import { href, navigate, query, segment } from '../router.ts'
import { Button, Empty, InvocationID, Loaded, PageHead, typeName } from '../ui/basic.tsx'
import { Table } from '../ui/table.tsx'
import { Pager } from './common.tsx'

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
  const params = { service: service.name, prefix, scope, cursor, limit: pageSize }
  const list = useResource(`objects:${JSON.stringify(params)}`, (s) => get<Page>(withQuery('/objects', params), s), { every: 5000, keep: true, topics: ['invocations'] })
  const scopes = useResource(`scopes:${service.name}`, (s) => optional('/services/{service}/scopes', () => get<{ scopes: string[] }>(`/services/${segment(service.name)}/scopes`, s)), { every: 15_000 })
  const known = scopes.data?.scopes ?? []
  const go = (changes: Record<string, string | undefined>): void => navigate(href('/objects', { service: service.name, scope: scope || undefined, ...changes }))
  const link = (o: { key: string }): string => href(`/objects/${segment(service.name)}/${segment(o.key)}`, scope ? { scope } : {})
  return (
    <>
      <div class="tabs-row">
        <nav class="tabs" aria-label="Services">
          {services.map((s) => <a key={s.name} href={href('/objects', { service: s.name })} class={s.name === service.name ? 'on' : ''} aria-current={s.name === service.name ? 'page' : undefined}>{s.name}<span class="count">{typeName(s.ty)}</span></a>)}
        </nav>
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
      <Loaded of={list} what="The objects could not be listed">{(page) => page.objects.length === 0
        ? <Empty title={prefix ? 'No key starts like this' : cursor ? 'No more keys' : 'No state yet'} icon="state"><p>{prefix || cursor ? <a href={href('/objects', { service: service.name, ...(scope ? { scope } : {}) })}>Show all</a> : `${service.name} has written no state${scope ? ' in this scope' : ''}, and none of its keys is in use.`}</p></Empty>
        : (
          <>
            <Table label="Objects" rows={page.objects} keyOf={(o) => o.key} hrefOf={link} dim={list.changing} columns={[
              { id: 'key', title: service.ty === 'Workflow' ? 'Workflow id' : 'Key', class: 'grow cut', cell: (o) => <a class="strong mono cut" href={link(o)}>{o.key === '' ? <span class="faint">empty key</span> : <bdi>{o.key}</bdi>}</a> },
              { id: 'entries', title: 'State entries', class: 'num fit', cell: (o) => formatCount(o.state_entries) },
              { id: 'bytes', title: 'Size', class: 'num fit', cell: (o) => formatBytes(o.state_bytes) },
              { id: 'holder', title: 'Held by', class: 'c-idcol', cell: (o) => (o.held_by ? <InvocationID id={o.held_by} /> : <span class="faint">free</span>) },
              { id: 'waiting', title: 'Waiting', class: 'num fit', cell: (o) => (o.waiting ? <a class="warn-text" href={href('/invocations', new URLSearchParams([['status', 'pending'], ['service', service.name], ['key', o.key], ...(scope ? [['scope', scope]] : [])]))}>{formatCount(o.waiting)}{scope && o.waiting >= maxCounted ? ' or more' : ''}</a> : <span class="faint">0</span>) },
            ]} />
            <Pager count={page.objects.length} noun="key" cursor={cursor} next={page.next_cursor} changing={list.changing} to={(cursor) => href('/objects', { service: service.name, scope: scope || undefined, prefix: prefix || undefined, cursor })} />
          </>
        )}</Loaded>
    </>
  )
}
