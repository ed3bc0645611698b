// Queries: editor with completion, results as a grid, export, history.

import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { get, request, sql, type QueryResult } from '../api/client.ts'
import type { QueryLimits, TableInfo } from '../api/types.ts'
import { formatBytes, formatCount, kindOfID, plural } from '../lib/format.ts'
import { formatDuration } from '../lib/time.ts'
import { serverNow } from '../lib/clock.ts'
import { toCSV } from '../lib/csv.ts'
import { addRun, median } from '../lib/query-runs.ts'
import { queries, queryRuns } from '../prefs.ts'
import { useResource } from '../resource.ts'
import { href, query, segment, setQuery } from '../router.ts'
import { Button, Copy, Empty, Menu, PageHead, Section, Time } from '../ui/basic.tsx'
import { Icon } from '../ui/icons.tsx'
import { Editor, type EditorHandle } from '../ui/editor.tsx'
import { DialogFrame, openDialog } from '../ui/overlay.tsx'
import { saveFile } from '../lib/save.ts'

const samples: [string, string][] = [
  ['Invocations by service and status', 'SELECT target_service_name, status, COUNT(*) AS n\nFROM sys_invocation\nGROUP BY 1, 2\nORDER BY n DESC'],
  ['Awakeables, the oldest first', 'SELECT id, invocation_id, target, waiting_since\nFROM sys_awakeable\nORDER BY waiting_since\nLIMIT 100'],
  ['What fails now', "SELECT id, target, retry_count, last_failure\nFROM sys_invocation\nWHERE status IN ('backing-off', 'paused')\nORDER BY retry_count DESC\nLIMIT 100"],
  ['Slowest of the last hour', "SELECT id, target, completed_at - created_at AS duration\nFROM sys_invocation\nWHERE status = 'completed' AND created_at > now() - INTERVAL '1 hour'\nORDER BY duration DESC\nLIMIT 50"],
  ['Longest journals', 'SELECT id, target, status, journal_size\nFROM sys_invocation\nORDER BY journal_size DESC\nLIMIT 50'],
  ['Largest state values', 'SELECT service_name, service_key, key, value_length\nFROM state\nORDER BY value_length DESC\nLIMIT 50'],
  ['Keys with the longest queues', 'SELECT service_name, service_key, COUNT(*) AS waiting\nFROM sys_inbox\nGROUP BY 1, 2\nORDER BY waiting DESC\nLIMIT 50'],
  ['Replicas and their lag', 'SELECT partition_id, plain_node_id, effective_mode, target_tail_lsn - applied_log_lsn AS lag\nFROM partition_state\nORDER BY lag DESC'],
]

/** Rows drawn at first. */
const shownRows = 500

interface Outcome {
  result?: QueryResult
  columns: string[]
  took: number
  error?: Error & { line?: number; column?: number; suggestion?: string }
  /** The steps of a plan, instead of a result. */
  plan?: string[]
}

export function SQL() {
  const given = query.value.get('query')
  const initial = given ?? queries.value[0] ?? samples[0]![1]
  const text = useRef(initial)
  const editor = useRef<EditorHandle | undefined>(undefined)
  const running = useRef<AbortController | undefined>(undefined)
  const [busy, setBusy] = useState(false)
  const [outcome, setOutcome] = useState<Outcome>()
  const tables = useResource('tables', (s) => get<{ tables: TableInfo[]; limits?: QueryLimits }>('/query/tables', s), { every: 0 })
  const schema = useMemo(() => tables.data && Object.fromEntries(tables.data.tables.map((t) => [t.name, t.columns.map((c) => ({ label: c.name, detail: c.type, info: c.description }))])), [tables.data])

  const run = (): void => {
    const q = text.current.trim()
    if (q === '') return
    running.current?.abort()
    const abort = new AbortController()
    running.current = abort
    setBusy(true)
    const begun = performance.now()
    sql(q, { signal: abort.signal, columns: true }).then((result) => {
      if (abort.signal.aborted) return
      const columns = result.columns?.map((c) => c.name) ?? [...new Set(result.rows.flatMap((r) => Object.keys(r)))]
      const took = performance.now() - begun
      setOutcome({ result, columns, took })
      queryRuns.value = addRun(queryRuns.value, q, serverNow(), { took, rows: result.rows.length, read: result.stats?.rows_read ?? 0 })
      queries.value = [q, ...queries.value.filter((o) => o !== q)].slice(0, 50)
      setQuery({ query: q })
    }, (err: Error) => {
      if (abort.signal.aborted) return
      const at = /line (\d+),? column (\d+)/.exec(err.message)
      setOutcome({ columns: [], took: performance.now() - begun, error: err })
      queryRuns.value = addRun(queryRuns.value, q, serverNow(), undefined)
      if (at) editor.current?.select(Number(at[1]), Number(at[2]))
    }).finally(() => {
      if (running.current === abort) setBusy(false)
    })
  }
  const explain = (): void => {
    const q = text.current.trim().replace(/^explain\s+/i, '')
    if (q === '') return
    running.current?.abort()
    const abort = new AbortController()
    running.current = abort
    setBusy(true)
    const begun = performance.now()
    sql(`EXPLAIN ${q}`, { signal: abort.signal }).then((result) => {
      if (!abort.signal.aborted) setOutcome({ columns: [], took: performance.now() - begun, plan: result.rows.map((r) => String(r.plan)) })
    }, (err: Error) => {
      if (!abort.signal.aborted) setOutcome({ columns: [], took: performance.now() - begun, error: err })
    }).finally(() => {
      if (running.current === abort) setBusy(false)
    })
  }
  const use = (q: string): void => {
    text.current = q
    editor.current?.set(q)
    editor.current?.focus()
  }
  useEffect(() => {
    if (given) run()
    return () => running.current?.abort()
  }, [])
  return (
    <>
      <PageHead title="SQL" summary="Read-only queries over invocations, journals, state, queues, nodes and partitions of the whole cluster">
        <Menu label="Samples" icon="star" items={samples.map(([title, q]) => ({ title, run: () => { use(q); run() } }))}>Samples</Menu>
        {queryRuns.value.length > 0 && <Button icon="clock" onClick={() => void openDialog('History', (close) => <History close={close} use={use} />, true)}>History</Button>}
        <Button icon="columns" onClick={() => tables.data && void openDialog('Tables', (close) => <Tables tables={tables.data!.tables} close={close} />, true)}>Tables</Button>
      </PageHead>
      <div class="sql">
        <Editor language="sql" label="Query" value={initial} {...(schema ? { schema } : {})} onChange={(v) => { text.current = v }} onSubmit={run} minHeight="120px" maxHeight="40vh" handle={(e) => { editor.current = e }} />
        <div class="sql-bar">
          {busy ? <Button icon="stop" onClick={() => { running.current?.abort(); setBusy(false) }}>Stop</Button> : <Button kind="primary" icon="play" onClick={run}>Run</Button>}
          <Button icon="invocations" disabled={busy} title="Show how the tables would be read" onClick={explain}>Plan</Button>
          <kbd>Ctrl Enter</kbd>
          <span class="grow" />
          {outcome?.result && <span class="muted num" title={costOf(outcome.result)}>{plural(outcome.result.rows.length, 'row')} in {formatDuration(outcome.took)}{outcome.result.stats && outcome.result.stats.scans > 0 ? ` · ${formatCount(outcome.result.stats.rows_read)} read` : ''}</span>}
          {outcome?.result && outcome.result.rows.length > 0 && (
            <Menu label="Export" icon="download" items={[
              { title: 'CSV', run: () => saveFile('result.csv', 'text/csv', toCSV(outcome.columns, outcome.result!.rows)) },
              { title: 'JSON', run: () => saveFile('result.json', 'application/json', JSON.stringify(outcome.result!.rows, null, 1)) },
            ]}>Export</Menu>
          )}
        </div>
      </div>
      {busy && <p class="muted" role="status">Running…</p>}
      {outcome?.error && <div class="error-box" role="alert"><div class="error-text"><strong>The query failed</strong><p class="mono wrap">{outcome.error.message}</p></div></div>}
      {outcome?.result?.notices && (
        <ul class="notices" aria-label="Notices">
          {outcome.result.notices.map((n) => <li key={n.message}><Icon name="alert" size={14} /><button type="button" class="link" title="Select it in the query" onClick={() => editor.current?.select(n.line, n.column)}>{n.message}</button></li>)}
        </ul>
      )}
      {outcome?.result && (outcome.result.rows.length === 0 ? <Empty title="No rows" icon="sql" /> : <Grid columns={outcome.columns} rows={outcome.result.rows} />)}
      {outcome?.plan && (
        <Section title="Plan" count={plural(outcome.plan.length, 'step')}>
          <ol class="plan-steps mono">{outcome.plan.map((step, i) => <li key={i} style={{ paddingLeft: `${(step.length - step.trimStart().length) * 10}px` }}>{step.trim()}</li>)}</ol>
          <p class="muted">The result is not computed. Conditions on id, service, key and status narrow what is read; everything else is evaluated row by row.</p>
        </Section>
      )}
      {tables.data?.limits && <p class="muted limits">A query may run {tables.data.limits.timeout} and return {formatCount(tables.data.limits.max_rows)} rows or {formatBytes(tables.data.limits.max_bytes)}; {formatCount(tables.data.limits.concurrency)} run at a time.</p>}
    </>
  )
}

function costOf({ stats }: QueryResult): string | undefined {
  return stats && `${plural(stats.scans, 'scan')} of tables, ${plural(stats.partitions, 'partition')} asked, ${plural(stats.pages, 'page')}, ${plural(stats.rows_read, 'row')} read`
}

/** The queries of this browser, with what they cost. */
function History({ close, use }: { close: () => void; use: (q: string) => void }) {
  return (
    <DialogFrame title="History" close={close} actions={<><Button icon="trash" onClick={() => { queryRuns.value = []; queries.value = []; close() }}>Forget all</Button><Button onClick={close}>Close</Button></>}>
      <p class="muted">Kept in this browser. Times include the network; read rows are those that the partitions looked at.</p>
      <div class="table-wrap" tabIndex={0} role="region" aria-label="Queries">
        <table class="table" aria-label="Queries">
          <thead><tr><th scope="col">Query</th><th scope="col" class="num fit">Runs</th><th scope="col" class="num fit">Median</th><th scope="col" class="num fit">Slowest</th><th scope="col" class="num fit">Rows</th><th scope="col" class="num fit">Read</th><th scope="col" class="num fit">Last run</th></tr></thead>
          <tbody>
            {queryRuns.value.map((r) => (
              <tr key={r.query}>
                <td class="history-query"><button type="button" class="link mono cut" title={r.query} onClick={() => { use(r.query); close() }}>{r.query.replace(/\s+/g, ' ').slice(0, 200)}</button></td>
                <td class="num fit">{formatCount(r.runs)}{r.failures > 0 && <span class="bad-text"> · {formatCount(r.failures)} failed</span>}</td>
                <td class="num fit">{r.times.length > 0 ? formatDuration(median(r.times)) : '–'}</td>
                <td class="num fit">{r.times.length > 0 ? formatDuration(Math.max(...r.times)) : '–'}</td>
                <td class="num fit">{r.times.length > 0 ? formatCount(r.rows) : '–'}</td>
                <td class="num fit">{r.times.length > 0 ? formatCount(r.read) : '–'}</td>
                <td class="num fit"><Time at={r.at} /></td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </DialogFrame>
  )
}

function Grid({ columns, rows }: { columns: string[]; rows: Record<string, unknown>[] }) {
  const [limit, setLimit] = useState(shownRows)
  return (
    <div class="table-wrap" tabIndex={0} role="region" aria-label="Result">
      <table class="table grid-result" aria-label="Result">
        <thead><tr><th scope="col" class="num fit">#</th>{columns.map((c) => <th key={c} scope="col">{c}</th>)}</tr></thead>
        <tbody>
          {rows.slice(0, limit).map((r, i) => (
            <tr key={i}><td class="num faint fit">{i + 1}</td>{columns.map((c) => <td key={c} class={typeof r[c] === 'number' ? 'num' : ''}><Cell value={r[c]} column={c} /></td>)}</tr>
          ))}
        </tbody>
      </table>
      {rows.length > limit && <p class="payload-note"><Button small onClick={() => setLimit(limit + 2000)}>Show more of {formatCount(rows.length)} rows</Button></p>}
    </div>
  )
}

function Cell({ value, column }: { value: unknown; column: string }) {
  if (value === undefined || value === null) return <span class="faint">NULL</span>
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  if (typeof value === 'string') {
    const kind = kindOfID(value)
    if (kind === 'invocation') return <a class="mono" href={href(`/invocations/${segment(value)}`)}>{value}</a>
    if (kind === 'awakeable') return <a class="mono" href={href('/awakeables', { id: value })}>{value}</a>
    if (kind === 'deployment') return <a class="mono" href={href(`/deployments/${segment(value)}`)}>{value}</a>
  }
  if (text.length > 120 || text.includes('\n')) {
    return <button type="button" class="cell-more mono" onClick={() => void openDialog(column, (close) => <DialogFrame title={column} close={close}><div class="payload-head"><Copy text={text} /></div><pre class="payload-body" tabIndex={0} dir="auto">{text.slice(0, 1 << 20)}</pre></DialogFrame>, true)}>{text.slice(0, 120)}…</button>
  }
  return <span class="mono" dir="auto">{text}</span>
}

function Tables({ tables, close }: { tables: TableInfo[]; close: () => void }) {
  const [find, setFind] = useState('')
  const wanted = find.toLowerCase()
  return (
    <DialogFrame title="Tables" close={close}>
      <input class="input" type="search" placeholder="Find a table or column" aria-label="Find" value={find} autofocus onInput={(e) => setFind(e.currentTarget.value)} />
      <div class="tables">
        {tables.filter((t) => `${t.name} ${t.description} ${t.columns.map((c) => c.name).join(' ')}`.toLowerCase().includes(wanted)).map((t) => (
          <details key={t.name}>
            <summary><b class="mono">{t.name}</b> <span class="muted">{t.description}</span></summary>
            <table class="table small" aria-label={t.name}><tbody>{t.columns.map((c) => <tr key={c.name}><td class="mono">{c.name}</td><td class="muted">{c.type}</td><td class="muted">{c.description}</td></tr>)}</tbody></table>
          </details>
        ))}
      </div>
    </DialogFrame>
  )
}

export { request, Section }
