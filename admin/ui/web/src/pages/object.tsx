// One object or workflow run: state with an editor, holder, queue, promises, latest invocations.

import { useState } from 'preact/hooks'
import { APIError, get, withQuery } from '../api/client.ts'
import type { Invocation, InvocationPage, ObjectDetail, Service } from '../api/types.ts'
import { saveFile } from '../lib/save.ts'
import { formatBytes, formatCount, plural } from '../lib/format.ts'
import { preview } from '../lib/payload.ts'
import { averagesOf, dueAt, formatDuration } from '../lib/time.ts'
import { refreshAll } from '../live.ts'
import { useResource } from '../resource.ts'
import { href, query, segment, setQuery, type Match } from '../router.ts'
import { refusalOf } from '../session.ts'
import { Button, Elapsed, Empty, InvocationID, Loaded, PageHead, Pill, Section, Status, Time, resultOf, typeName } from '../ui/basic.tsx'
import { Icon } from '../ui/icons.tsx'
import { ask } from '../ui/overlay.tsx'
import { PayloadView } from '../ui/payload.tsx'
import { Table } from '../ui/table.tsx'
import { editState, readState, writeState, type State, type Value } from './edit-state.tsx'

/** Longer keys may have to be scrolled, also with the keyboard. */
const longKey = 100

export function ObjectPage({ params }: { params: Match }) {
  const service = params.service!
  const key = params.key!
  const scope = query.value.get('scope') ?? ''
  const name = { service, key, scope }
  const info = useResource(`service:${service}`, (s) => get<Service>(`/services/${segment(service)}`, s), { every: 30_000 })
  const unreadable = refusalOf('payloads')
  const state = useResource(unreadable ? undefined : `state:${service}:${key}:${scope}`, (s) => readState(name, s), { every: 3000, topics: ['invocations'] })
  const object = useResource(`object:${service}:${key}:${scope}`, (s) => get<ObjectDetail>(withQuery(`/objects/${segment(service)}/${segment(key)}`, { scope: scope || undefined }), s), { every: 3000, topics: ['invocations'] })
  const workflow = info.data?.ty === 'Workflow'
  const list = useResource(`object-inv:${service}:${key}:${scope}`, (s) => get<InvocationPage>(withQuery('/invocations', new URLSearchParams([['service', service], ['key', key], ...(scope ? [['scope', scope]] : []), ['limit', '25']])), s), { every: 3000, topics: ['invocations'] })
  // The queue has ids only.
  const queued = object.data?.queue ?? []
  const waiting = useResource(queued.length > 0 ? `waiting:${service}:${key}:${scope}` : undefined, async (s) => {
    const page = await get<InvocationPage>(withQuery('/invocations', new URLSearchParams([['status', 'pending'], ['service', service], ['key', key], ...(scope ? [['scope', scope]] : []), ['oldest_first', 'true'], ['limit', '100']])), s)
    return new Map(page.invocations.map((i) => [i.id, i]))
  }, { every: 3000, topics: ['invocations'] })
  // Changes of the state wait in the queue, too, and are no invocations.
  const isChange = (r: { of: Invocation | undefined }): boolean => !r.of && waiting.data !== undefined && waiting.data.size < 100
  const missing = info.error instanceof APIError && info.error.status === 404
  if (missing) return <Empty title="This service does not exist" icon="state" page><p class="mono">{service}</p><p><a href={href('/objects')}>All objects</a></p></Empty>
  const remove = (current: State, value?: Value): void => void ask({
    title: value ? `Delete “${value.key}”?` : 'Delete all state of this key?', action: 'Delete', danger: true, ...(value ? {} : { typed: 'delete' }),
    body: <><p class="mono wrap"><bdi>{service}/{key}</bdi></p><p>{value ? 'The entry is removed from the state.' : `${plural(current.values.length, 'entry', 'entries')} are removed.`} The change waits for the invocation that holds the key, and is refused if the state changes first.</p></>,
  }, async () => {
    await writeState(name, current.version, value ? current.values.filter((v) => v.key !== value.key) : [])
    refreshAll()
  })
  const o = object.data
  const averages = averagesOf(list.data?.invocations ?? [])
  return (
    <>
      <div class="crumbs"><a href={href('/objects')}>Objects</a><Icon name="right" size={12} /><a href={href('/objects', { service, ...(scope ? { scope } : {}) })}>{service}</a></div>
      <PageHead title={key === '' ? <span class="faint">empty key</span> : <bdi class="mono wrap long-title" tabIndex={key.length > longKey ? 0 : undefined}>{key}</bdi>} summary={<>{info.data ? typeName(info.data.ty) : ''}{scope && <> in the scope <Pill>{scope}</Pill></>}{o?.held_by ? <> · held by <InvocationID id={o.held_by} />{o.held_since ? <> for <Elapsed from={o.held_since} /></> : null}</> : o ? ' · free' : ''}{o?.waiting ? ` · ${plural(o.waiting, 'invocation')} waiting` : ''}</>}>
        <a class="button plain" href={href('/invocations', new URLSearchParams([['service', service], ['key', key], ...(scope ? [['scope', scope]] : [])]))}><span>Invocations</span></a>
        {info.data && <a class="button plain" href={href(`/services/${segment(service)}`, { key, ...(scope ? { scope } : {}), invoke: info.data.handlers.find((h) => h.ty !== 'Workflow')?.name ?? info.data.handlers[0]?.name })}><span>Invoke</span></a>}
      </PageHead>
      <Section title="State" flush count={state.data ? formatCount(state.data.values.length) : undefined} actions={state.data && (
        <>
          <Button small icon="plus" needs="operate" onClick={() => editState(name, state.data!)}>Add entry</Button>
          {state.data.values.length > 0 && <Button small icon="trash" needs="operate" onClick={() => remove(state.data!)}>Delete all</Button>}
        </>
      )}>
        {unreadable ? <p class="journal-empty">{unreadable}</p> : <Loaded of={state} rows={3} what="The state could not be read">{(s) => s.values.length === 0 ? <p class="journal-empty">No state.</p> : (
          <StateList values={s.values} edit={(v) => editState(name, s, v)} remove={(v) => remove(s, v)} />
        )}</Loaded>}
      </Section>
      {workflow && (
        <Section title="Promises" flush>
          <Loaded of={object} rows={2}>{(d) => (d.promises ?? []).length === 0 ? <p class="journal-empty">No promises.</p> : (
            <Table label="Promises" rows={d.promises ?? []} keyOf={(r) => r.name} columns={[
              { id: 'key', title: 'Name', cell: (r) => <bdi class="mono strong">{r.name}</bdi> },
              { id: 'state', title: 'State', class: 'fit', cell: (r) => (r.completed ? r.failure ? <Pill tone="bad">rejected</Pill> : <Pill tone="ok">completed</Pill> : <Pill>pending</Pill>) },
              { id: 'value', title: 'Value', class: 'grow cut', cell: (r) => r.value_omitted ? <span class="faint">too large to show here</span> : <span class="mono cut" dir="auto">{r.failure ?? r.value_utf8 ?? (r.value_base64 ? `base64: ${r.value_base64}` : '')}</span> },
            ]} />
          )}</Loaded>
        </Section>
      )}
      {o && o.queue.length > 0 && (
        <Section title="Waiting for the key" count={formatCount(o.waiting ?? o.queue.length)} flush>
          <Table label="Waiting" rows={o.queue.map((id, n) => ({ id, n: n + 1, of: waiting.data?.get(id) }))} keyOf={(r) => r.id} hrefOf={(r) => (isChange(r) ? undefined : href(`/invocations/${segment(r.id)}`))} columns={[
            { id: 'n', title: '#', class: 'fit num', cell: (r) => r.n },
            { id: 'handler', title: 'Handler', class: 'fill', cell: (r) => (r.of ? <HandlerLink of={r.of} /> : <span class="faint">{isChange(r) ? 'change of the state' : '–'}</span>) },
            { id: 'id', title: 'Id', class: 'c-idcol', cell: (r) => (isChange(r) ? <span class="mono">{r.id}</span> : <InvocationID id={r.id} />) },
            { id: 'since', title: 'Waiting for', class: 'fit num', cell: (r) => (r.of ? <Elapsed from={r.of.created_at} /> : <span class="faint">–</span>) },
          ]} />
          {(o.waiting ?? 0) > o.queue.length && <p class="section-note">{formatCount(o.waiting! - o.queue.length)} more wait behind these.</p>}
        </Section>
      )}
      <Section title="Latest invocations" flush actions={averages && <span class="muted">On average waited <b class="num">{formatDuration(averages.wait)}</b>{averages.run !== undefined && <>, took <b class="num">{formatDuration(averages.run)}</b></>}</span>}>
        <Loaded of={list} rows={5}>{(page) => page.invocations.length === 0 ? <p class="journal-empty">None is kept.</p> : (
          <Table label="Invocations of this key" rows={page.invocations} keyOf={(i) => i.id} hrefOf={(i) => href(`/invocations/${segment(i.id)}`)} columns={[
            { id: 'status', title: 'Status', class: 'fit', cell: (i) => <Status status={i.status} result={resultOf(i)} /> },
            { id: 'target', title: 'Handler', class: 'fill', cell: (i) => <HandlerLink of={i} /> },
            { id: 'created', title: 'Created', class: 'fit num', cell: (i) => <Time at={i.created_at} /> },
            { id: 'waited', title: 'Waited', class: 'fit num', cell: (i) => (i.running_at || i.status === 'pending' ? <Elapsed from={dueAt(i)} to={i.running_at} /> : <span class="faint">–</span>) },
            { id: 'duration', title: 'Duration', class: 'fit num', cell: (i) => <Elapsed from={i.created_at} to={i.completed_at} /> },
          ]} />
        )}</Loaded>
      </Section>
    </>
  )
}

/** Entries drawn at first, and with each step. */
const entriesShown = 100

/** The entries of the state; many of them in steps, with a filter. */
/** The handler of an invocation of this key. */
function HandlerLink({ of: i }: { of: Invocation }) {
  return <a class="target" href={href(`/invocations/${segment(i.id)}`)}><span class="t-handler">{i.target_handler_name}</span></a>
}

function StateList({ values, edit, remove }: { values: Value[]; edit: (v: Value) => void; remove: (v: Value) => void }) {
  const [limit, setLimit] = useState(entriesShown)
  const find = query.value.get('find') ?? ''
  const found = find === '' ? values : values.filter((v) => v.key.toLowerCase().includes(find.toLowerCase()))
  // An entry that the address names is shown wherever it is.
  const open = query.value.get('entry')
  const at = open === null ? -1 : found.findIndex((v) => v.key === open)
  const shown = found.slice(0, Math.max(limit, at + 1))
  return (
    <>
      {values.length > 20 && (
        <div class="state-find">
          <input class="input small" type="search" placeholder="Find an entry by its name" aria-label="Find an entry by its name" value={find} onInput={(e) => { setLimit(entriesShown); setQuery({ find: e.currentTarget.value || undefined }) }} />
          {find !== '' && <span class="muted num" role="status">{formatCount(found.length)} of {formatCount(values.length)}</span>}
        </div>
      )}
      {found.length === 0 ? <p class="journal-empty">No entry has this in its name.</p> : <ul class="state-list">{shown.map((v) => <StateValue key={v.key} v={v} edit={() => edit(v)} remove={() => remove(v)} />)}</ul>}
      {found.length > shown.length && <p class="section-note"><Button small onClick={() => setLimit(shown.length + entriesShown)}>Show {formatCount(Math.min(entriesShown, found.length - shown.length))} more</Button> <span class="muted">{formatCount(shown.length)} of {formatCount(found.length)} entries are shown.</span></p>}
    </>
  )
}

function StateValue({ v, edit, remove }: { v: Value; edit: () => void; remove: () => void }) {
  const open = query.value.get('entry') === v.key
  return (
    <li class={open ? 'open' : ''}>
      <div class="state-row">
        <button type="button" class="state-line" aria-expanded={open} onClick={() => setQuery({ entry: open ? undefined : v.key })}>
          <bdi class="mono strong">{v.key}</bdi><span class="c-arrow">=</span><span class="mono cut state-preview" dir="auto">{preview({ bytes: v.bytes, length: v.bytes.length }, 160)}</span>
        </button>
        <span class="muted num">{formatBytes(v.bytes.length)}</span>
        <Button small icon="edit" kind="ghost" needs="operate" label={`Edit ${v.key}`} onClick={edit} />
        <Button small icon="trash" kind="ghost" needs="operate" label={`Delete ${v.key}`} onClick={remove} />
      </div>
      {open && <PayloadView payload={{ bytes: v.bytes, length: v.bytes.length }} title={v.key} save={() => saveFile(v.key, 'application/octet-stream', v.bytes)} />}
    </li>
  )
}
