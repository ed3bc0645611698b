// Flow control: rules, counters, queues.

import { useState } from 'preact/hooks'
import { APIError, get, request, withQuery } from '../api/client.ts'
import type { Queue, Rule, Version } from '../api/types.ts'
import { formatCount, plural } from '../lib/format.ts'
import { formatDuration, parseISODuration } from '../lib/time.ts'
import { refreshAll } from '../live.ts'
import { useResource } from '../resource.ts'
import { href, query, segment, setQuery, type Match } from '../router.ts'
import { Button, Command, Copy, Empty, Field, InvocationID, Loaded, Menu, PageHead, Pill, Section, Tabs, Time, Unseen } from '../ui/basic.tsx'
import { DialogFrame, ask, openDialog, toast, toastError } from '../ui/overlay.tsx'
import { Table } from '../ui/table.tsx'
import { Pager, askPause } from './common.tsx'

interface Counter {
  scope: string
  l1?: string
  l2?: string
  level: string
  usage: number
  concurrency_limit?: number
  rule_pattern?: string
  waiting: number
  /** An operator has paused the scope. Only counters of whole scopes have it. */
  paused?: boolean
  paused_at?: string
  paused_by?: string
  pause_reason?: string
}

interface CounterPage {
  counters: Counter[]
  next_cursor?: string
}

interface QueuePage {
  vqueues: Queue[]
  next_cursor?: string
}

const pageSize = 100

export function FlowControl({ params }: { params: Match }) {
  const tab = params.tab ?? 'rules'
  const version = useResource('version', (s) => get<Version>('/version', s), { every: 60_000 })
  const off = version.data && version.data.features.vqueues === false
  return (
    <>
      <PageHead title="Flow control" summary="Limits of concurrency and rate per scope, and the queues of waiting invocations">
        {tab === 'rules' && !off && <Button kind="primary" icon="plus" needs="operate" onClick={() => editRule()}>New rule</Button>}
      </PageHead>
      {off ? (
        <Empty title="Flow control is off" icon="flow">
          <p>It can be turned on for a fresh cluster. Callers then name a scope, and rules limit what runs at a time in it.</p>
          <Command text="PLATFORM_EXPERIMENTAL_ENABLE_PROTOCOL_V7=true PLATFORM_EXPERIMENTAL_ENABLE_VQUEUES=true platform-server" />
        </Empty>
      ) : (
        <>
          <div class="tabs-row">
            <Tabs label="Flow control" tabs={[['rules', 'Rules'], ['counters', 'Counters'], ['queues', 'Queues']].map(([id, title]) => ({ title, href: href(`/flow-control${id === 'rules' ? '' : `/${id}`}`), on: tab === id }))} />
            <Find tab={tab} />
          </div>
          {tab === 'rules' && <Rules />}
          {tab === 'counters' && <Counters />}
          {tab === 'queues' && <Queues />}
        </>
      )}
    </>
  )
}

/** Rules are found by a part of their pattern; of counters and queues, which are paged, those of one scope. */
function Find({ tab }: { tab: string }) {
  const rules = tab === 'rules'
  const name = rules ? 'find' : 'scope'
  const value = query.value.get(name) ?? ''
  const label = rules ? 'Find a rule' : 'Only of a scope'
  return <input key={tab} class="input small" type="search" placeholder={label} aria-label={label} value={value}
    {...(rules ? { onInput: (e: Event) => setQuery({ [name]: (e.currentTarget as HTMLInputElement).value || undefined }) } : { onChange: (e: Event) => setQuery({ [name]: (e.currentTarget as HTMLInputElement).value.trim() || undefined, cursor: undefined, id: undefined, rule: undefined }) })} />
}

function limitsText(r: Rule): string {
  const out: string[] = []
  if (r.limits.concurrency !== null && r.limits.concurrency !== undefined) out.push(`${formatCount(r.limits.concurrency)} at a time`)
  if (r.limits.rate) out.push(`${r.limits.rate} starts`)
  if (r.limits.queue_limit !== null && r.limits.queue_limit !== undefined) out.push(`${formatCount(r.limits.queue_limit)} may wait`)
  return out.join(' · ') || 'no limit'
}

/** The counters that a rule can be compared with: those with the most waiting invocations. */
const busiest = (signal: AbortSignal): Promise<CounterPage> => get<CounterPage>('/limits/counters?limit=1000', signal)

function Rules() {
  const book = useResource('rules', (s) => get<{ rules: Rule[]; version: number }>('/limits/rules', s), { every: 5000 })
  const counters = useResource('counters', busiest, { every: 3000 })
  const find = query.value.get('find') ?? ''
  const use = (pattern: string): { usage: number; waiting: number; counters: number } => {
    const mine = (counters.data?.counters ?? []).filter((c) => c.rule_pattern === pattern)
    return { usage: mine.reduce((n, c) => n + c.usage, 0), waiting: mine.reduce((n, c) => n + c.waiting, 0), counters: mine.length }
  }
  const toggle = (r: Rule): void => {
    request(`/limits/rules/${segment(r.pattern)}`, { method: 'PUT', body: change(r, { disabled: !r.disabled }) }).then(() => {
      toast('ok', `Rule ${r.pattern} was ${r.disabled ? 'enabled' : 'disabled'}`)
      refreshAll()
    }, (err: unknown) => toastError(err))
  }
  return (
    <Loaded of={book} what="The rules could not be read">{({ rules }) => rules.length === 0 ? (
      <Empty title="No rules" icon="flow"><p>Without rules nothing is limited. A rule such as <code>*</code> with a concurrency of 10 lets every scope run ten invocations at a time.</p><Button kind="primary" icon="plus" needs="operate" onClick={() => editRule()}>New rule</Button></Empty>
    ) : rules.every((r) => !r.pattern.includes(find)) ? <Empty title="No such rule" icon="flow"><p>No pattern contains <bdi class="mono">{find}</bdi>.</p></Empty> : (
      <Table label="Rules" rows={rules.filter((r) => r.pattern.includes(find))} keyOf={(r) => r.pattern} columns={[
        { id: 'pattern', title: 'Pattern', class: 'fit', cell: (r) => <button type="button" class="link mono strong" onClick={() => editRule(r)}>{r.pattern}</button> },
        { id: 'limits', title: 'Limits', class: 'nowrap', cell: (r) => <><span class={r.disabled ? 'faint' : ''}>{limitsText(r)}</span>{r.disabled && <> <Pill tone="warn">disabled</Pill></>}</> },
        { id: 'use', title: 'Running', class: 'num fit', cell: (r) => formatCount(use(r.pattern).usage) },
        { id: 'waiting', title: 'Waiting', class: 'num fit', cell: (r) => { const n = use(r.pattern).waiting; return n > 0 ? <b class="warn-text">{formatCount(n)}</b> : <span class="faint">0</span> } },
        { id: 'scopes', title: 'Counters', class: 'num fit', cell: (r) => { const n = use(r.pattern).counters; return n > 0 ? <a href={href('/flow-control/counters', { rule: r.pattern })}>{formatCount(n)}</a> : <span class="faint">0</span> } },
        { id: 'description', title: 'Description', class: 'grow cut', cell: (r) => <span class="cut muted" dir="auto">{r.description}</span> },
        { id: 'changed', title: 'Changed', class: 'num fit', cell: (r) => <Time at={r.last_modified_millis_since_epoch} /> },
        { id: 'menu', title: <Unseen>Actions</Unseen>, class: 'fit', cell: (r) => <Menu label={`Actions of ${r.pattern}`} icon="more" kind="ghost" small items={[
          { title: 'Edit', icon: 'edit', needs: 'operate', run: () => editRule(r) },
          { title: r.disabled ? 'Enable' : 'Disable', icon: r.disabled ? 'play' : 'pause', needs: 'operate', run: () => toggle(r) },
          { title: 'Delete', icon: 'trash', danger: true, needs: 'operate', run: () => void ask({ title: `Delete the rule ${r.pattern}?`, action: 'Delete', danger: true, body: <p>{use(r.pattern).waiting > 0 ? `${plural(use(r.pattern).waiting, 'invocation')} that ${use(r.pattern).waiting === 1 ? 'waits for it starts' : 'wait for it start'} immediately, unless another rule limits them.` : 'Nothing waits for it at the moment.'}</p> }, async () => {
            await request(`/limits/rules/${segment(r.pattern)}?expected_version=${r.version}`, { method: 'DELETE' })
            toast('ok', 'The rule was deleted')
            refreshAll()
          }) },
        ]} /> },
      ]} />
    )}</Loaded>
  )
}

/** The body of a change, with the precondition that the rule has not changed since it was read. */
function change(r: Rule, changes: Partial<Rule>): unknown {
  const next = { ...r, ...changes }
  return { pattern: r.pattern, description: next.description ?? '', disabled: next.disabled ?? false, limits: next.limits, precondition: r.version > 0 ? { type: 'matches', version: r.version } : { type: 'does_not_exist' } }
}

function editRule(rule?: Rule): void {
  void openDialog('Rule', (close) => <EditRule rule={rule} close={close} />)
}

function EditRule({ rule, close }: { rule: Rule | undefined; close: () => void }) {
  const [pattern, setPattern] = useState(rule?.pattern ?? '')
  const [concurrency, setConcurrency] = useState(String(rule?.limits.concurrency ?? ''))
  const [rate, setRate] = useState(rule?.limits.rate ?? '')
  const [queue, setQueue] = useState(String(rule?.limits.queue_limit ?? ''))
  const [description, setDescription] = useState(rule?.description ?? '')
  const [error, setError] = useState('')
  const [busy, setBusy] = useState(false)
  const counters = useResource('counters', busiest, { every: 3000 })
  const parts = pattern.split('/').filter((p) => p !== '')
  const matches = (counters.data?.counters ?? []).filter((c) => {
    const own = [c.scope, c.l1, c.l2].filter((p): p is string => !!p)
    return own.length === parts.length && own.every((p, i) => parts[i] === '*' || parts[i] === p)
  })
  const limit = concurrency === '' ? Infinity : Number(concurrency)
  const held = matches.reduce((n, c) => n + Math.max(0, c.usage + c.waiting - limit), 0)
  const submit = (e: Event): void => {
    e.preventDefault()
    setBusy(true)
    const limits = { concurrency: concurrency === '' ? null : Number(concurrency), rate: rate.trim() === '' ? null : rate.trim(), queue_limit: queue === '' ? null : Number(queue) }
    request(`/limits/rules/${segment(pattern)}`, { method: 'PUT', body: change(rule ?? { pattern, limits, version: 0 }, { limits, description }) }).then(() => {
      toast('ok', `Rule ${pattern} was ${rule ? 'changed' : 'created'}`)
      refreshAll()
      close()
    }, (err: Error) => {
      setBusy(false)
      setError(err.message)
    })
  }
  return (
    <form onSubmit={submit}>
      <DialogFrame title={rule ? `Rule ${rule.pattern}` : 'New rule'} close={close} actions={<><Button onClick={close}>Close</Button><Button kind="primary" type="submit" busy={busy} disabled={pattern === ''}>{rule ? 'Save' : 'Create'}</Button></>}>
        <Field label="Pattern" hint="scope, scope/key or scope/key/key; * stands for any. The most specific rule of each level counts."><input class="input mono" value={pattern} disabled={rule !== undefined} autofocus={!rule} placeholder="*" onInput={(e) => setPattern(e.currentTarget.value.trim())} /></Field>
        <div class="form-grid">
          <Field label="Concurrency" hint="Run at a time; empty: unlimited."><input class="input" type="number" min="0" value={concurrency} onInput={(e) => setConcurrency(e.currentTarget.value)} /></Field>
          <Field label="Rate" hint="Starts in a period: 100/s, 60/m."><input class="input" value={rate} onInput={(e) => setRate(e.currentTarget.value)} /></Field>
          <Field label="Queue" hint="May wait; further ones get 429."><input class="input" type="number" min="0" value={queue} onInput={(e) => setQueue(e.currentTarget.value)} /></Field>
        </div>
        <Field label="Description"><input class="input" value={description} maxLength={1000} onInput={(e) => setDescription(e.currentTarget.value)} /></Field>
        {pattern !== '' && counters.data && <p class="muted">{matches.length === 0 ? 'No scope in use matches this pattern now.' : `${plural(matches.length, 'counter')} ${matches.length === 1 ? 'matches' : 'match'} now${counters.data.next_cursor ? ', of the 1,000 busiest' : ''}. ${held > 0 ? `With this concurrency ${plural(held, 'invocation')} would wait.` : 'Nothing would wait.'}`}</p>}
        {error && <p class="dialog-error" role="alert">{error}</p>}
      </DialogFrame>
    </form>
  )
}

function Counters() {
  const rule = query.value.get('rule') ?? ''
  const cursor = query.value.get('cursor') ?? ''
  const scope = query.value.get('scope') ?? ''
  const counters = useResource(`counters:${rule}:${scope}:${cursor}`, (s) => get<CounterPage>(withQuery('/limits/counters', { rule, scope, cursor, limit: pageSize }), s), { every: 2000, keep: true })
  return (
    <Loaded of={counters} what="The counters could not be read">{(page) => (
      <>
        {rule && <p class="muted">Of the rule <Pill>{rule}</Pill> <a href={href('/flow-control/counters')}>show all</a></p>}
        {page.counters.length === 0 ? (
          <Empty title={scope || rule ? 'No counter matches' : 'Nothing is limited at the moment'} icon="flow">
            <p>Counters exist while invocations of a scope run or wait, or the scope is paused.</p>
            {scope && !rule && !cursor && <Button icon="pause" needs="operate" onClick={() => pauseScope(scope)}>Pause the scope {scope}</Button>}
          </Empty>
        ) : (
          <>
            <Table label="Counters" rows={page.counters} keyOf={(c) => [c.scope, c.l1, c.l2].join('/')} dim={counters.changing} columns={[
              { id: 'name', title: 'Scope and limit key', class: 'fit', cell: (c) => <span class="mono strong">{[c.scope, c.l1, c.l2].filter(Boolean).join('/')}</span> },
              { id: 'usage', title: 'In use', class: 'grow', cell: (c) => <Usage usage={c.usage} limit={c.concurrency_limit} /> },
              { id: 'waiting', title: 'Waiting', class: 'num fit', cell: (c) => (c.waiting > 0 ? <b class="warn-text">{formatCount(c.waiting)}</b> : <span class="faint">0</span>) },
              { id: 'state', title: 'State', class: 'fit', cell: (c) => c.paused && <><Pill tone="warn">paused</Pill> <span class="muted"><Time at={c.paused_at} />{c.paused_by && <> by <bdi>{c.paused_by}</bdi></>}{c.pause_reason && <>: <bdi>{c.pause_reason}</bdi></>}</span></> },
              { id: 'rule', title: 'Rule', class: 'fit', cell: (c) => (c.rule_pattern ? <span class="mono">{c.rule_pattern}</span> : <span class="faint">none</span>) },
              { id: 'list', title: <Unseen>Invocations of the scope</Unseen>, class: 'fit', cell: (c) => <a href={href('/invocations', { scope: c.scope })}>Invocations</a> },
              { id: 'menu', title: <Unseen>Actions</Unseen>, class: 'fit', cell: (c) => (c.level !== 'Scope' ? null : c.paused
                ? <Button small kind="ghost" needs="operate" icon="play" label={`Resume the scope ${c.scope}`} onClick={() => resumeScope(c.scope)} />
                : <Button small kind="ghost" needs="operate" icon="pause" label={`Pause the scope ${c.scope}`} onClick={() => pauseScope(c.scope)} />) },
            ]} />
            <Pager count={page.counters.length} noun="counter" cursor={cursor} next={page.next_cursor} changing={counters.changing} to={(cursor) => href('/flow-control/counters', { ...(rule ? { rule } : {}), ...(scope ? { scope } : {}), cursor })} />
          </>
        )}
      </>
    )}</Loaded>
  )
}

const pauseScope = (scope: string): void =>
  askPause('scope', <>All queues of <bdi class="mono">{scope}</bdi> stop, also those of limit keys and services that come later. Running invocations continue; nothing new starts until the scope is resumed.</>, (reason) => changeScope(scope, 'pause', reason))

function resumeScope(scope: string): void {
  void ask({ title: 'Resume this scope?', action: 'Resume', body: <p>Waiting invocations of <bdi class="mono">{scope}</bdi> start as their limits allow. Queues that are paused themselves remain paused.</p> }, () => changeScope(scope, 'resume'))
}

async function changeScope(scope: string, verb: 'pause' | 'resume', reason = ''): Promise<void> {
  await request(withQuery(`/limits/scopes/${segment(scope)}/${verb}`, { reason }), { method: 'POST' })
  toast('ok', `The scope ${scope} was ${verb}d`)
  refreshAll()
}

function Usage({ usage, limit }: { usage: number; limit: number | undefined }) {
  const share = limit ? Math.min(1, usage / limit) : 0
  return <span class="usage"><span class="usage-bar" aria-hidden="true"><i class={share >= 1 ? 'full' : ''} style={{ width: `${share * 100}%` }} /></span><span class="num">{formatCount(usage)}{limit !== undefined ? ` of ${formatCount(limit)}` : ''}</span></span>
}

function Queues() {
  const only = query.value.get('id')
  const cursor = query.value.get('cursor') ?? ''
  const scope = query.value.get('scope') ?? ''
  const queues = useResource(`vqueues:${only ?? ''}:${scope}:${cursor}`, (s) => (only ? oneQueue(only, s) : get<QueuePage>(withQuery('/vqueues', { scope, cursor, limit: pageSize }), s)), { every: 3000, keep: true })
  const change = async (q: Queue, verb: 'pause' | 'resume', reason = ''): Promise<void> => {
    await request(withQuery(`/vqueues/${segment(q.id)}/${verb}`, { reason }), { method: 'POST' })
    toast('ok', `The queue was ${verb}d`)
    refreshAll()
  }
  const toggle = (q: Queue): void => {
    if (q.queue_paused) void ask({ title: 'Resume this queue?', action: 'Resume', body: <p>Waiting invocations start as its limits allow.</p> }, () => change(q, 'resume'))
    else askPause('queue', 'Running invocations continue; nothing new starts until it is resumed.', (reason) => change(q, 'pause', reason))
  }
  return (
    <Loaded of={queues} what="The queues could not be read">{(page) => page.vqueues.length === 0 ? <Empty title={scope ? 'No queue of this scope' : 'No queues'} icon="flow"><p>A queue exists for every scope and limit key that is used.</p></Empty> : (
      <>
        <Section flush>
          <Table label="Queues" rows={page.vqueues} keyOf={(q) => q.id} dim={queues.changing} columns={[
            { id: 'name', title: 'Queue', class: 'fit', cell: (q) => <span><span class="mono strong">{[q.scope, q.limit_key].filter(Boolean).join(' · ') || q.object}</span> <span class="muted">{q.service}</span><Copy text={q.id} label="Copy the id of the queue" /></span> },
            { id: 'state', title: 'State', class: 'fit', cell: (q) => (q.queue_paused ? <><Pill tone="warn" title={q.paused_by ? `by ${q.paused_by}` : ''}>paused</Pill> {q.pause_reason && <bdi class="muted">{q.pause_reason}</bdi>}</> : blocked(q)) },
            { id: 'inbox', title: 'Waiting', class: 'num fit', cell: (q) => (q.scope && q.waiting > 0 ? <a href={href('/invocations', new URLSearchParams([['status', 'pending'], ['status', 'scheduled'], ['service', q.service], ['scope', q.scope], ...(q.limit_key ? [['limit_key', q.limit_key]] : [])]))}>{formatCount(q.waiting)}</a> : formatCount(q.waiting)) },
            { id: 'running', title: 'Running', class: 'num fit', cell: (q) => formatCount(q.running) },
            { id: 'suspended', title: 'Suspended', class: 'num fit', cell: (q) => formatCount(q.suspended) },
            { id: 'paused', title: 'Paused', class: 'num fit', cell: (q) => formatCount(q.paused) },
            { id: 'average-wait', title: 'Average wait', class: 'num fit', cell: (q) => <Average of={q.average_wait} /> },
            { id: 'average-run', title: 'Average run', class: 'num fit', cell: (q) => <Average of={q.average_run} /> },
            { id: 'head', title: 'Next', class: 'cut', cell: (q) => (q.head_id ? <InvocationID id={q.head_id} /> : <span class="faint">–</span>) },
            { id: 'start', title: 'Last start', class: 'num fit', cell: (q) => <Time at={q.last_start_at} /> },
            { id: 'menu', title: <Unseen>Actions</Unseen>, class: 'fit', cell: (q) => (q.object ? null : <Button small kind="ghost" needs="operate" icon={q.queue_paused ? 'play' : 'pause'} label={q.queue_paused ? 'Resume the queue' : 'Pause the queue'} onClick={() => toggle(q)} />) },
          ]} />
        </Section>
        {only ? <p class="journal-empty"><a href={href('/flow-control/queues')}>Show all queues</a></p>
          : <Pager count={page.vqueues.length} noun="queue" cursor={cursor} next={page.next_cursor} changing={queues.changing} to={(cursor) => href('/flow-control/queues', { ...(scope ? { scope } : {}), cursor })} />}
      </>
    )}</Loaded>
  )
}

function Average({ of }: { of: string | undefined }) {
  const ms = parseISODuration(of)
  return ms === undefined ? <span class="faint">–</span> : <span class="num">{formatDuration(ms)}</span>
}

/** A queue exists only while it has invocations. */
async function oneQueue(id: string, signal: AbortSignal): Promise<QueuePage> {
  try {
    return { vqueues: [await get<Queue>(`/vqueues/${segment(id)}`, signal)] }
  } catch (err) {
    if (err instanceof APIError && err.status === 404) return { vqueues: [] }
    throw err
  }
}

function blocked(q: Queue) {
  if (!q.head_status) return <span class="muted">empty</span>
  if (q.blocked_on === 'scope-paused') return <a href={href('/flow-control/counters', { scope: q.scope ?? '' })}><Pill tone="warn">scope paused</Pill></a>
  if (q.head_status === 'blocked') return <Pill tone="warn">{({ lock: 'waits for a key', 'limit-key-concurrency': 'at its concurrency limit', 'throttling-rules': 'at its rate limit' } as Record<string, string>)[q.blocked_on ?? ''] ?? 'blocked'}</Pill>
  return <Pill tone={q.head_status === 'ready' ? 'ok' : 'idle'}>{q.head_status}</Pill>
}
