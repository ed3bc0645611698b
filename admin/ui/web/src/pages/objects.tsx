// Virtual objects and workflow runs that have state, hold a key or wait for one.

import { useState } from 'preact/hooks'
import { get, rows } from '../api/client.ts'
import type { Service } from '../api/types.ts'
import { formatBytes, formatCount, sqlText } from '../lib/format.ts'
import { useResource } from '../resource.ts'
import { href, navigate, query, segment } from '../router.ts'
import { Button, Empty, InvocationID, Loaded, PageHead, typeName } from '../ui/basic.tsx'
import { Table } from '../ui/table.tsx'

interface ObjectRow {
  service_name: string
  service_key: string
  entries: number | string
  bytes: number | string
}

const pageSize = 100

/** The objects with state whose key is after another one. */
function listObjects(service: string, after: string, prefix: string, signal: AbortSignal): Promise<ObjectRow[]> {
  const where = [`service_name = ${sqlText(service)}`]
  if (after !== '') where.push(`service_key > ${sqlText(after)}`)
  if (prefix !== '') where.push(`service_key >= ${sqlText(prefix)} AND service_key < ${sqlText(`${prefix}\u{10FFFF}`)}`)
  return rows<ObjectRow>(`SELECT service_name, service_key, COUNT(*) AS entries, SUM(value_length) AS bytes FROM state WHERE ${where.join(' AND ')} GROUP BY service_name, service_key ORDER BY service_key LIMIT ${pageSize}`, signal)
}

export function Objects() {
  const services = useResource('services', (s) => get<{ services: Service[] }>('/services', s), { every: 10_000, topics: ['deployments'] })
  const keyed = services.data?.services.filter((s) => s.ty !== 'Service') ?? []
  const wanted = query.value.get('service')
  const service = keyed.find((s) => s.name === wanted) ?? keyed[0]
  const after = query.value.get('after') ?? ''
  const prefix = query.value.get('prefix') ?? ''
  const [text, setText] = useState(prefix)
  const list = useResource(service ? `objects:${service.name}:${after}:${prefix}` : undefined, (s) => listObjects(service!.name, after, prefix, s), { every: 5000, keep: true, topics: ['invocations'] })
  const locks = useResource(service ? `locks:${service.name}` : undefined, (s) => rows<{ service_key: string; invocation_id: string; waiting?: number }>(
    `SELECT service_key, invocation_id FROM sys_keyed_service_status WHERE service_name = ${sqlText(service!.name)} LIMIT 200`, s), { every: 3000, topics: ['invocations'] })
  const waiting = useResource(service ? `inbox:${service.name}` : undefined, (s) => rows<{ service_key: string; n: number | string }>(
    `SELECT service_key, COUNT(*) AS n FROM sys_inbox WHERE service_name = ${sqlText(service!.name)} GROUP BY service_key ORDER BY n DESC LIMIT 200`, s), { every: 3000, topics: ['invocations'] })
  const holder = new Map((locks.data ?? []).map((l) => [l.service_key, l.invocation_id]))
  const queue = new Map((waiting.data ?? []).map((l) => [l.service_key, Number(l.n)]))
  // Objects that have no state yet but are in use.
  const merged = (data: ObjectRow[]): ObjectRow[] => {
    if (after !== '' || prefix !== '') return data
    const have = new Set(data.map((o) => o.service_key))
    const more = [...new Set([...holder.keys(), ...queue.keys()])].filter((k) => !have.has(k)).map((k) => ({ service_name: service!.name, service_key: k, entries: 0, bytes: 0 }))
    return [...more, ...data]
  }
  const go = (params: Record<string, string | undefined>): void => navigate(href('/objects', { service: service?.name, ...params }))
  return (
    <>
      <PageHead title="Objects" summary="Virtual objects and workflow runs with their state, holder and queue" />
      {services.data && keyed.length === 0 && <Empty title="No objects" icon="state"><p>None of the registered services is a virtual object or a workflow.</p></Empty>}
      {service && (
        <>
          <div class="tabs-row">
            <nav class="tabs" aria-label="Services">
              {keyed.map((s) => <a key={s.name} href={href('/objects', { service: s.name })} class={s === service ? 'on' : ''} aria-current={s === service ? 'page' : undefined}>{s.name}<span class="count">{typeName(s.ty)}</span></a>)}
            </nav>
            <form class="find-form" onSubmit={(e) => {
              e.preventDefault()
              go({ prefix: text || undefined })
            }}>
              <input class="input small" type="search" placeholder="Key starts with" aria-label="Key starts with" value={text} onInput={(e) => setText(e.currentTarget.value)} />
              <Button small type="submit">Find</Button>
              {text !== '' && <Button small onClick={() => navigate(href(`/objects/${segment(service.name)}/${segment(text)}`))}>Open this key</Button>}
            </form>
          </div>
          <Loaded of={list} what="The objects could not be listed">{(data) => {
            const all = merged(data)
            if (all.length === 0) return <Empty title={prefix ? 'No key starts like this' : after ? 'No more' : 'No state yet'} icon="state"><p>{prefix || after ? <a href={href('/objects', { service: service.name })}>Show all</a> : `${service.name} has written no state, and none of its keys is in use.`}</p></Empty>
            return (
              <>
                <Table label="Objects" rows={all} keyOf={(o) => o.service_key} hrefOf={(o) => href(`/objects/${segment(service.name)}/${segment(o.service_key)}`)} dim={list.changing} columns={[
                  { id: 'key', title: service.ty === 'Workflow' ? 'Workflow id' : 'Key', class: 'grow cut', cell: (o) => <a class="strong mono cut" href={href(`/objects/${segment(service.name)}/${segment(o.service_key)}`)}><bdi>{o.service_key}</bdi></a> },
                  { id: 'entries', title: 'State entries', class: 'num fit', cell: (o) => formatCount(Number(o.entries)) },
                  { id: 'bytes', title: 'Size', class: 'num fit', cell: (o) => formatBytes(Number(o.bytes)) },
                  { id: 'holder', title: 'Held by', class: 'c-idcol', cell: (o) => (holder.has(o.service_key) ? <InvocationID id={holder.get(o.service_key)!} /> : <span class="faint">free</span>) },
                  { id: 'waiting', title: 'Waiting', class: 'num fit', cell: (o) => (queue.get(o.service_key) ? <a class="warn-text" href={href('/invocations', new URLSearchParams([['status', 'pending'], ['service', service.name], ['key', o.service_key]]))}>{formatCount(queue.get(o.service_key)!)}</a> : <span class="faint">0</span>) },
                ]} />
                <footer class="pager"><span class="muted">{formatCount(all.length)} keys{data.length === pageSize ? ' on this page' : ''}</span><span class="grow" />
                  {after !== '' && <Button icon="left" onClick={() => history.back()}>Previous</Button>}
                  {data.length === pageSize && <Button icon="right" onClick={() => go({ after: data[data.length - 1]!.service_key, prefix: prefix || undefined })}>Next</Button>}
                </footer>
              </>
            )
          }}</Loaded>
        </>
      )}
    </>
  )
}
