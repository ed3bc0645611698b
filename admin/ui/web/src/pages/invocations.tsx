// The list of invocations.

import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { batch, operations, type Operation } from '../actions.tsx'
import { get, withQuery } from '../api/client.ts'
import type { Counts, Invocation, InvocationPage, Service } from '../api/types.ts'
import {
  filterNames, filterTitles, filterValues, formatFilters, parseFilters, parseFilterText, presetOf, presets, statuses, toggleFilter, withFilter, withoutFilter,
  type Filter, type FilterName, type ListState,
} from '../lib/filters.ts'
import { formatCompact, formatCount, kindOfID, plural } from '../lib/format.ts'
import { serverNow } from '../lib/clock.ts'
import { parseTime, parseDuration } from '../lib/time.ts'
import { columns, views } from '../prefs.ts'
import { optional, useResource } from '../resource.ts'
import { href, navigate, query, segment } from '../router.ts'
import { Previous } from './common.tsx'
import { Button, Copy, DeploymentID, Elapsed, Empty, ErrorBox, InvocationID, Menu, PageHead, Skeleton, Stale, Status, Target, Time, resultOf, statusLook } from '../ui/basic.tsx'
import { Icon, StatusShape } from '../ui/icons.tsx'
import { DialogFrame, openDialog, toast } from '../ui/overlay.tsx'
import { Table, type Column } from '../ui/table.tsx'

const pageSize = 100

/** All columns, in their order. */
export const allColumns: Column<Invocation>[] = [
  { id: 'status', title: 'Status', class: 'fit', cell: (i) => <Status status={i.status} result={resultOf(i)} note={(i.retry_count ?? 0) > 1 && i.status !== 'completed' ? `×${i.retry_count}` : undefined} /> },
  { id: 'target', title: 'Target', class: 'grow', cell: (i) => <Target service={i.target_service_name} name={i.target_service_ty === 'service' ? undefined : i.target_service_key ?? ''} handler={i.target_handler_name} link={href(`/invocations/${segment(i.id)}`)} /> },
  { id: 'id', title: 'Id', class: 'c-idcol', cell: (i) => <InvocationID id={i.id} /> },
  { id: 'created', title: 'Created', sort: 'created', class: 'fit num', cell: (i) => <Time at={i.created_at} /> },
  { id: 'modified', title: 'Modified', sort: 'modified', class: 'fit num', cell: (i) => <Time at={i.modified_at} /> },
  { id: 'duration', title: 'Duration', class: 'fit num', cell: (i) => i.status === 'scheduled' ? <span class="muted"><Time at={i.scheduled_start_at} /></span> : <Elapsed from={i.created_at} to={i.completed_at} /> },
  { id: 'attempts', title: 'Attempts', class: 'fit num', cell: (i) => i.retry_count ?? <span class="faint">–</span> },
  { id: 'retry', title: 'Next attempt', class: 'fit num', cell: (i) => <Time at={i.next_retry_at} /> },
  { id: 'failure', title: 'Failure', class: 'grow cut', cell: (i) => <span class="cut" title={i.completion_failure ?? i.last_failure} dir="auto">{(i.completion_failure ?? i.last_failure ?? '').split('\n')[0]}</span> },
  { id: 'key', title: 'Key', class: 'cut', cell: (i) => <bdi class="mono">{i.target_service_key ?? ''}</bdi> },
  { id: 'deployment', title: 'Deployment', class: 'c-idcol', cell: (i) => (i.pinned_deployment_id ? <DeploymentID id={i.pinned_deployment_id} /> : <span class="faint">–</span>) },
  { id: 'idempotency', title: 'Idempotency key', class: 'cut', cell: (i) => (i.idempotency_key ? <span class="mono"><bdi>{i.idempotency_key}</bdi> <Copy text={i.idempotency_key} /></span> : <span class="faint">–</span>) },
  { id: 'invoked', title: 'Invoked by', class: 'cut', cell: (i) => (i.invoked_by_id ? <a href={href(`/invocations/${segment(i.invoked_by_id)}`)}><bdi>{i.invoked_by_target ?? i.invoked_by_id}</bdi></a> : i.invoked_by) },
  { id: 'journal', title: 'Journal', class: 'fit num', cell: (i) => formatCount(i.journal_size) },
  { id: 'scope', title: 'Scope', class: 'cut', cell: (i) => (i.scope ? <bdi>{i.scope}</bdi> : <span class="faint">–</span>) },
  { id: 'limit', title: 'Limit key', class: 'cut', cell: (i) => (i.limit_key ? <bdi>{i.limit_key}</bdi> : <span class="faint">–</span>) },
  { id: 'started', title: 'Started', class: 'fit num', cell: (i) => <Time at={i.running_at} /> },
  { id: 'completed', title: 'Completed', class: 'fit num', cell: (i) => <Time at={i.completed_at} /> },
]

const titleOf = (c: Column<Invocation>): string => String(c.title)

/** With more services than this, the filter bar finds one sooner than a row of tabs. */
const tabLimit = 24

/** The list of each service, with the same filters, except that of handlers. */
function ServiceTabs({ services, state }: { services: Service[]; state: ListState }) {
  if (services.length < 2 || services.length > tabLimit) return null
  const chosen = state.filters.filter((f) => f.name === 'service').map((f) => f.value)
  const others = state.filters.filter((f) => f.name !== 'service' && f.name !== 'handler')
  const tab = (title: string, filters: Filter[], on: boolean) => (
    <a href={href('/invocations', formatFilters({ ...state, filters }))} class={on ? 'on' : ''} aria-current={on ? 'page' : undefined}><bdi>{title}</bdi></a>
  )
  return (
    <nav class="presets" aria-label="Services">
      {tab('All services', others, chosen.length === 0)}
      {services.map(({ name }) => tab(name, withFilter(others, { name: 'service', value: name }), chosen.includes(name)))}
    </nav>
  )
}

export function Invocations() {
  const q = query.value
  const state = parseFilters(q)
  const cursor = q.get('cursor') ?? ''
  const params = formatFilters(state)
  const list = new URLSearchParams(params)
  list.set('limit', String(pageSize))
  if (cursor) list.set('cursor', cursor)
  const topics = ['invocations']
  const page = useResource(`invocations?${list.toString()}`, (s) => get<InvocationPage>(withQuery('/invocations', list), s), { every: 3000, topics, keep: true })
  // Counts without the filters of status and result, so that all of them can be chosen.
  const others = formatFilters({ filters: state.filters.filter((f) => f.name !== 'status' && f.name !== 'result'), oldestFirst: false })
  const counts = useResource(`counts?${others.toString()}`, (s) => optional('/invocations/counts', () => get<Counts>(withQuery('/invocations/counts', others), s)), { every: 5000, topics, keep: true })
  const services = useResource('services', (s) => get<{ services: Service[] }>('/services', s), { every: 30_000 })
  const [selected, select] = useState<ReadonlySet<string>>(new Set())
  // Also those of other pages are selected: all that match the filters.
  const [everything, setEverything] = useState(false)
  const setSelected = (ids: ReadonlySet<string>): void => {
    select(ids)
    setEverything(false)
  }
  const key = params.toString()
  useEffect(() => setSelected(new Set()), [key])

  const change = (next: ListState): void => navigate(href('/invocations', formatFilters(next)))
  const setFilters = (filters: Filter[]): void => change({ ...state, filters })
  const preset = presetOf(state)
  const shown = columns.value
  const visible = allColumns.filter((c) => shown.includes(c.id))
  const rows = page.data?.invocations ?? []
  const total = counts.data ? matching(counts.data, state) : undefined
  const first = cursor === ''
  const run = (operation: Operation): void => {
    const chosen = rows.filter((i) => selected.has(i.id))
    if (selected.size > 0 && !everything) batch(operation, { ids: [...selected], sample: chosen.map((i) => i.target) })
    else batch(operation, { filters: state.filters, count: total, sample: rows.slice(0, 5).map((i) => i.target) })
  }

  return (
    <>
      <PageHead title="Invocations" summary={total !== undefined ? `${plural(total, 'invocation')}${preset ? ` · ${preset.hint}` : ' match the filters'}` : preset?.hint ?? 'matching the filters'}>
        <Views state={state} />
        <Menu label="Columns" icon="columns" items={allColumns.map((c) => ({
          title: titleOf(c), checked: shown.includes(c.id), keep: true,
          run: () => { columns.value = shown.includes(c.id) ? shown.filter((o) => o !== c.id) : [...shown, c.id] },
        }))} />
        <Menu label="Actions" icon="more" items={(Object.keys(operations) as Operation[]).map((o) => ({
          title: selected.size > 0 && !everything ? `${operations[o].title} ${formatCount(selected.size)} selected` : `${operations[o].title} all that match`, icon: operations[o].icon, danger: operations[o].danger, needs: 'operate' as const, run: () => run(o),
        }))} />
      </PageHead>
      <nav class="presets" aria-label="Presets">
        {presets.map((p) => (
          <a key={p.id} href={href('/invocations', formatFilters(p))} class={preset?.id === p.id ? 'on' : ''} aria-current={preset?.id === p.id ? 'page' : undefined} title={p.hint}>{p.title}</a>
        ))}
        {views.value.map((v) => (
          <a key={v.name} class={`saved${location.search === v.search ? ' on' : ''}`} href={href('/invocations') + v.search}><Icon name="star" size={12} /><bdi>{v.name}</bdi></a>
        ))}
      </nav>
      <ServiceTabs services={services.data?.services ?? []} state={state} />
      <StatusBar counts={counts.data ?? undefined} state={state} toggle={(f) => setFilters(toggleFilter(state.filters, f))} />
      <FilterBar state={state} services={services.data?.services.map((s) => s.name) ?? []} set={setFilters} />
      {selected.size > 0 && (
        <div class="selection" role="status">
          <strong>{everything ? `All ${total !== undefined ? `${formatCount(total)} ` : ''}that match` : formatCount(selected.size)} selected</strong>
          {!everything && total !== undefined && total > selected.size && rows.every((i) => selected.has(i.id)) && (
            <button type="button" class="link" onClick={() => setEverything(true)}>Select all {formatCount(total)} that match</button>
          )}
          {(Object.keys(operations) as Operation[]).map((o) => (
            <Button key={o} small needs="operate" icon={operations[o].icon} disabled={!everything && !rows.some((i) => selected.has(i.id) && operations[o].on(i.status))} onClick={() => run(o)}>{operations[o].title}</Button>
          ))}
          <span class="grow" />
          <button type="button" class="link" onClick={() => setSelected(new Set())}>Clear</button>
        </div>
      )}
      <Stale error={page.data ? page.error : undefined} at={page.at} retry={page.reload} />
      {page.data === undefined && page.error && <ErrorBox what="The invocations could not be listed" error={page.error} retry={page.reload} />}
      {page.loading && <Skeleton rows={16} />}
      {page.data && rows.length === 0 && (
        <Empty title={state.filters.length > 0 ? 'No invocation matches' : first ? 'No invocations yet' : 'No more invocations'} icon="invocations">
          {state.filters.length > 0
            ? <p>Remove a filter, or <a href={href('/invocations')}>show all</a>.</p>
            : <p>Invoke a handler from its <a href={href('/services')}>service</a>, and it appears here.</p>}
        </Empty>
      )}
      {rows.length > 0 && (
        <Table label="Invocations" columns={visible} rows={rows} keyOf={(i) => i.id} hrefOf={(i) => href(`/invocations/${segment(i.id)}`)} selected={selected} onSelect={setSelected} dim={page.changing}
          sorted={{ by: state.byModified ? 'modified' : 'created', ascending: state.oldestFirst }} onSort={(by, ascending) => change({ filters: state.filters, oldestFirst: ascending, ...(by === 'modified' ? { byModified: true } : {}) })} />
      )}
      {(rows.length > 0 || !first) && (
        <footer class="pager">
          <span class="muted">{first ? `${state.byModified ? (state.oldestFirst ? 'Least recently changed' : 'Most recently changed') : state.oldestFirst ? 'Oldest' : 'Newest'} ${formatCount(rows.length)}${total !== undefined ? ` of ${formatCount(total)}` : page.data?.next_cursor ? '' : ' (all)'}` : `${formatCount(rows.length)} more`}</span>
          <button type="button" class="link" onClick={() => change({ ...state, oldestFirst: !state.oldestFirst })}>{state.oldestFirst ? 'Newest first' : 'Oldest first'}</button>
          <span class="grow" />
          {!first && <Previous />}
          {!first && <Button onClick={() => change(state)}>First</Button>}
          {page.data?.next_cursor && <Button icon="right" onClick={() => {
            const next = new URLSearchParams(params)
            next.set('cursor', page.data!.next_cursor!)
            navigate(href('/invocations', next))
          }}>Next</Button>}
        </footer>
      )}
    </>
  )
}

function matching(counts: Counts, state: ListState): number {
  const values = (name: FilterName): string[] => state.filters.filter((f) => f.name === name).map((f) => f.value)
  const [wanted, results] = [values('status'), values('result')]
  if (results.length > 0) return wanted.length > 0 && !wanted.includes('completed') ? 0 : results.reduce((n, r) => n + (counts.by_result?.[r] ?? 0), 0)
  if (wanted.length === 0) return counts.total
  return wanted.reduce((n, s) => n + (counts.by_status[s] ?? 0), 0)
}

const results = ['success', 'failure', 'cancelled', 'killed'] as const

/** One bar of all statuses and results with their counts; each is a filter. */
function StatusBar({ counts, state, toggle }: { counts: Counts | undefined; state: ListState; toggle: (f: Filter) => void }) {
  const on = new Set(state.filters.filter((f) => f.name === 'status' || f.name === 'result').map((f) => `${f.name}=${f.value}`))
  const ended = counts?.by_result ?? {}
  const chip = (name: 'status' | 'result', value: string, n: number) => {
    const { tone, shape, title } = statusLook(value)
    const chosen = on.has(`${name}=${value}`)
    return (
      <button key={value} type="button" aria-pressed={chosen} class={`${chosen ? 'on' : ''} ${tone} ${counts && n === 0 ? 'zero' : ''}`} onClick={() => toggle({ name, value })}>
        <StatusShape shape={shape} size={11} /><span>{title}</span>{counts && <b class="num">{formatCompact(n)}</b>}
      </button>
    )
  }
  return (
    <div class="statusbar">
      {counts && counts.total > 0 && (
        <div class="parts-bar" aria-hidden="true">
          {statuses.flatMap((s) => {
            const n = counts.by_status[s] ?? 0
            if (n === 0) return []
            const grow = (k: number) => ({ flexGrow: k, minWidth: '3px' })
            if (s === 'completed') return results.filter((r) => (ended[r] ?? 0) > 0).map((r) => <i key={r} class={`tone-${statusLook(r).tone}`} style={grow(ended[r]!)} />)
            return [<i key={s} class={`tone-${statusLook(s).tone} st-${s}`} style={grow(n)} />]
          })}
        </div>
      )}
      <div class="statuses" role="group" aria-label="Filter by status and result">
        {statuses.filter((s) => s !== 'completed' || on.has('status=completed')).map((s) => chip('status', s, counts?.by_status[s] ?? 0))}
        {results.filter((r) => r === 'success' || r === 'failure' || (ended[r] ?? 0) > 0 || on.has(`result=${r}`)).map((r) => chip('result', r, ended[r] ?? 0))}
      </div>
    </div>
  )
}

function FilterBar({ state, services, set }: { state: ListState; services: string[]; set: (filters: Filter[]) => void }) {
  const [text, setText] = useState('')
  const input = useRef<HTMLInputElement>(null)
  const submit = (e: Event): void => {
    e.preventDefault()
    const t = text.trim()
    if (t === '') return
    if (kindOfID(t) === 'invocation') {
      navigate(href(`/invocations/${segment(t)}`))
      return
    }
    const f = parseFilterText(t, services) ?? { name: 'key', value: t } as Filter
    set(withFilter(state.filters, f))
    setText('')
  }
  const chips = state.filters.filter((f) => f.name !== 'status' && f.name !== 'result')
  return (
    <div class="filterbar">
      {chips.map((f) => (
        <span class="chip" key={`${f.name}=${f.value}`}>
          <button type="button" class="chip-text" onClick={() => void editFilter(f.name, f.value, services, (v) => set(withFilter(withoutFilter(state.filters, f), { name: f.name, value: v })))}>
            <span class="muted">{filterTitles[f.name]}</span> <bdi>{f.value}</bdi>
          </button>
          <button type="button" class="copy" aria-label={`Remove the filter ${filterTitles[f.name]}`} onClick={() => set(withoutFilter(state.filters, f))}><Icon name="close" size={12} /></button>
        </span>
      ))}
      <form onSubmit={submit} class="filter-form">
        <input ref={input} class="input ghost" value={text} onInput={(e) => setText(e.currentTarget.value)} placeholder={chips.length === 0 ? 'Filter: key, service, id, or name:value' : 'Add a filter'} aria-label="Filter" list="filter-services" autocomplete="off" spellcheck={false} />
        <datalist id="filter-services">{services.map((s) => <option key={s} value={s} />)}</datalist>
      </form>
      <Menu label="Add a filter" icon="filter" kind="ghost" small items={filterNames.filter((n) => n !== 'status').map((n) => ({
        title: filterTitles[n], run: () => void editFilter(n, '', services, (v) => set(withFilter(state.filters, { name: n, value: v }))),
      }))}>Filter</Menu>
      {state.filters.length > 0 && <button type="button" class="link" onClick={() => set([])}>Clear</button>}
    </div>
  )
}

function editFilter(name: FilterName, value: string, services: string[], done: (value: string) => void): Promise<void> {
  return openDialog(filterTitles[name], (close) => <FilterDialog name={name} initial={value} services={services} close={close} done={done} />)
}

function FilterDialog({ name, initial, services, close, done }: { name: FilterName; initial: string; services: string[]; close: () => void; done: (value: string) => void }) {
  const time = /_(after|before)$/.test(name)
  const [value, setValue] = useState(initial)
  const values = filterValues[name] ?? (name === 'service' ? services : undefined)
  const parsed = useMemo(() => (time ? toTime(value) : value.trim()), [value, time])
  const submit = (e: Event): void => {
    e.preventDefault()
    if (!parsed) return
    close()
    done(parsed)
  }
  return (
    <form onSubmit={submit}>
      <DialogFrame title={filterTitles[name]} close={close} actions={<><Button onClick={close}>Close</Button><Button kind="primary" type="submit" disabled={!parsed}>Apply</Button></>}>
        {values && name !== 'service'
          ? (
            <select class="input" value={value} aria-label={filterTitles[name]} autofocus onChange={(e) => setValue(e.currentTarget.value)}>
              <option value="">Choose…</option>
              {values.map((v) => <option key={v}>{v}</option>)}
            </select>
          )
          : <input class="input" value={value} autofocus list={values ? 'filter-services' : undefined} aria-label={filterTitles[name]} onInput={(e) => setValue(e.currentTarget.value)} />}
        {time && <p class="field-hint">A time such as 2026-11-22T10:00Z, or how long ago: 10m, 2h, 1d. {parsed && <span class="mono">{parsed}</span>}</p>}
      </DialogFrame>
    </form>
  )
}

function toTime(text: string): string {
  const ago = parseDuration(text)
  if (ago !== undefined) return new Date(serverNow() - ago).toISOString()
  const at = parseTime(text.trim())
  return at === undefined ? '' : new Date(at).toISOString()
}

function Views({ state }: { state: ListState }) {
  const search = formatFilters(state).toString()
  const known = views.value.find((v) => v.search === `?${search}`)
  if (search === '' || (presetOf(state) && !known)) return null
  if (known) return <Button kind="ghost" icon="star" onClick={() => { views.value = views.value.filter((v) => v !== known) }}>Forget view</Button>
  return (
    <Button kind="ghost" icon="star" onClick={() => void openDialog('Save this view', (close) => <SaveView close={close} search={`?${search}`} />)}>Save view</Button>
  )
}

function SaveView({ close, search }: { close: () => void; search: string }) {
  const [name, setName] = useState('')
  return (
    <form onSubmit={(e) => {
      e.preventDefault()
      if (!name.trim()) return
      views.value = [...views.value.filter((v) => v.name !== name.trim()), { name: name.trim(), search }]
      close()
      toast('ok', 'The view is kept in this browser. Its address can be shared.')
    }}>
      <DialogFrame title="Save this view" close={close} actions={<><Button onClick={close}>Close</Button><Button kind="primary" type="submit" disabled={!name.trim()}>Save</Button></>}>
        <input class="input" placeholder="Name" aria-label="Name" value={name} maxLength={40} autofocus onInput={(e) => setName(e.currentTarget.value)} />
      </DialogFrame>
    </form>
  )
}
