// One object or workflow run: state with an editor, holder, queue, promises, latest invocations.

import { useMemo, useState } from 'preact/hooks'
import { APIError, get, request, rows, withQuery } from '../api/client.ts'
import type { InvocationPage, Service, StateAnswer } from '../api/types.ts'
import { formatBytes, formatCount, plural, sqlText } from '../lib/format.ts'
import { decode, fromBase64, preview } from '../lib/payload.ts'
import { diffLines } from '../lib/diff.ts'
import { refreshAll } from '../live.ts'
import { useResource } from '../resource.ts'
import { href, query, segment, setQuery, type Match } from '../router.ts'
import { refusalOf } from '../session.ts'
import { Button, Copy, Elapsed, Empty, InvocationID, Loaded, PageHead, Pill, Section, Status, Target, Time, resultOf, typeName } from '../ui/basic.tsx'
import { Editor } from '../ui/editor.tsx'
import { DialogFrame, ask, openDialog, toast } from '../ui/overlay.tsx'
import { PayloadView } from '../ui/payload.tsx'
import { Table } from '../ui/table.tsx'

interface Value {
  key: string
  bytes: Uint8Array
  text: string | undefined
}

interface Loadedstate {
  version: string
  values: Value[]
}

async function readState(service: string, key: string, scope: string, signal?: AbortSignal): Promise<Loadedstate> {
  const answer = await request<StateAnswer>(withQuery(`/services/${segment(service)}/state`, { object_key: key, scope: scope || undefined }), { signal })
  return { version: answer.version, values: answer.state.map((e) => ({ key: e.key, bytes: fromBase64(e.value), text: e.value_utf8 })) }
}

/** Replaces the state. Values that are not text are sent as bytes. */
async function writeState(service: string, key: string, scope: string, version: string, values: Value[]): Promise<void> {
  await request(`/services/${segment(service)}/state?wait=true`, {
    method: 'POST', timeout: 30_000,
    body: { object_key: key, version, ...(scope ? { scope } : {}), new_state: Object.fromEntries(values.map((v) => [v.key, v.text ?? [...v.bytes]])) },
  })
}

export function ObjectPage({ params }: { params: Match }) {
  const service = params.service!
  const key = params.key!
  const scope = query.value.get('scope') ?? ''
  const info = useResource(`service:${service}`, (s) => get<Service>(`/services/${segment(service)}`, s), { every: 30_000 })
  const unreadable = refusalOf('payloads')
  const state = useResource(unreadable ? undefined : `state:${service}:${key}:${scope}`, (s) => readState(service, key, scope, s), { every: 3000, topics: ['invocations'] })
  const where = `service_name = ${sqlText(service)} AND service_key = ${sqlText(key)}`
  const holder = useResource(`holder:${service}:${key}`, (s) => rows<{ invocation_id: string }>(`SELECT invocation_id FROM sys_keyed_service_status WHERE ${where} LIMIT 1`, s), { every: 3000, topics: ['invocations'] })
  const queue = useResource(`queue:${service}:${key}`, (s) => rows<{ id: string; sequence_number: number }>(`SELECT id, sequence_number FROM sys_inbox WHERE ${where} ORDER BY sequence_number LIMIT 50`, s), { every: 3000, topics: ['invocations'] })
  const workflow = info.data?.ty === 'Workflow'
  const promises = useResource(workflow ? `promises:${service}:${key}` : undefined, (s) => rows<{ key: string; completed: boolean; completion_success_value_utf8?: string; completion_failure?: string }>(`SELECT key, completed, completion_success_value_utf8, completion_failure FROM sys_promise WHERE ${where} ORDER BY key LIMIT 200`, s), { every: 3000 })
  const list = useResource(`object-inv:${service}:${key}`, (s) => get<InvocationPage>(withQuery('/invocations', { service, key, limit: 25 }), s), { every: 3000, topics: ['invocations'] })
  const missing = info.error instanceof APIError && info.error.status === 404
  if (missing) return <Empty title="This service does not exist" icon="state"><p class="mono">{service}</p></Empty>
  const edit = (current: Loadedstate, value?: Value): void => void openDialog('Edit state', (close) => <EditValue service={service} objectKey={key} scope={scope} state={current} value={value} close={close} />, true)
  const remove = (current: Loadedstate, value?: Value): void => void ask({
    title: value ? `Delete “${value.key}”?` : 'Delete all state of this key?', action: 'Delete', danger: true, ...(value ? {} : { typed: 'delete' }),
    body: <><p class="mono wrap"><bdi>{service}/{key}</bdi></p><p>{value ? 'The entry is removed from the state.' : `${plural(current.values.length, 'entry', 'entries')} are removed.`} The change waits for the invocation that holds the key, and is refused if the state changes first.</p></>,
  }, async () => {
    await writeState(service, key, scope, current.version, value ? current.values.filter((v) => v.key !== value.key) : [])
    toast('ok', 'The state was changed')
    refreshAll()
  })
  const holding = holder.data?.[0]?.invocation_id
  return (
    <>
      <div class="crumbs"><a href={href('/objects', { service })}>{service}</a></div>
      <PageHead title={<bdi class="mono wrap">{key}</bdi>} summary={<>{info.data ? typeName(info.data.ty) : ''}{holding ? <> · held by <InvocationID id={holding} /></> : holder.data ? ' · free' : ''}{queue.data && queue.data.length > 0 ? ` · ${plural(queue.data.length, 'invocation')} waiting` : ''}</>}>
        <a class="button plain" href={href('/invocations', new URLSearchParams([['service', service], ['key', key]]))}><span>Invocations</span></a>
        {info.data && <a class="button plain" href={href(`/services/${segment(service)}`, { invoke: info.data.handlers.find((h) => h.ty !== 'Workflow')?.name ?? info.data.handlers[0]?.name })}><span>Invoke</span></a>}
      </PageHead>
      <Section title="State" flush count={state.data ? formatCount(state.data.values.length) : undefined} actions={state.data && (
        <>
          <Button small icon="plus" needs="operate" onClick={() => edit(state.data!)}>Add entry</Button>
          {state.data.values.length > 0 && <Button small icon="trash" needs="operate" onClick={() => remove(state.data!)}>Delete all</Button>}
        </>
      )}>
        {unreadable ? <p class="journal-empty">{unreadable}</p> : <Loaded of={state} rows={3} what="The state could not be read">{(s) => s.values.length === 0 ? <p class="journal-empty">No state.</p> : (
          <ul class="state-list">{s.values.map((v) => <StateValue key={v.key} v={v} edit={() => edit(s, v)} remove={() => remove(s, v)} />)}</ul>
        )}</Loaded>}
      </Section>
      {workflow && (
        <Section title="Promises" flush>
          <Loaded of={promises} rows={2}>{(p) => p.length === 0 ? <p class="journal-empty">No promises.</p> : (
            <Table label="Promises" rows={p} keyOf={(r) => r.key} columns={[
              { id: 'key', title: 'Name', cell: (r) => <bdi class="mono strong">{r.key}</bdi> },
              { id: 'state', title: 'State', class: 'fit', cell: (r) => (r.completed ? r.completion_failure ? <Pill tone="bad">rejected</Pill> : <Pill tone="ok">resolved</Pill> : <Pill>pending</Pill>) },
              { id: 'value', title: 'Value', class: 'grow cut', cell: (r) => <span class="mono cut" dir="auto">{r.completion_failure ?? r.completion_success_value_utf8 ?? ''}</span> },
            ]} />
          )}</Loaded>
        </Section>
      )}
      {queue.data && queue.data.length > 0 && (
        <Section title="Waiting for the key" count={formatCount(queue.data.length)} flush>
          <Table label="Waiting" rows={queue.data} keyOf={(r) => r.id} hrefOf={(r) => href(`/invocations/${segment(r.id)}`)} columns={[
            { id: 'n', title: '#', class: 'fit num', cell: (r) => queue.data!.indexOf(r) + 1 },
            { id: 'id', title: 'Invocation', class: 'grow', cell: (r) => <InvocationID id={r.id} /> },
          ]} />
        </Section>
      )}
      <Section title="Latest invocations" flush>
        <Loaded of={list} rows={5}>{(page) => page.invocations.length === 0 ? <p class="journal-empty">None is kept.</p> : (
          <Table label="Invocations of this key" rows={page.invocations} keyOf={(i) => i.id} hrefOf={(i) => href(`/invocations/${segment(i.id)}`)} columns={[
            { id: 'status', title: 'Status', class: 'fit', cell: (i) => <Status status={i.status} result={resultOf(i)} /> },
            { id: 'target', title: 'Handler', class: 'grow', cell: (i) => <Target service={i.target_service_name} name={i.target_service_key ?? ''} handler={i.target_handler_name} link={href(`/invocations/${segment(i.id)}`)} /> },
            { id: 'created', title: 'Created', class: 'fit num', cell: (i) => <Time at={i.created_at} /> },
            { id: 'duration', title: 'Duration', class: 'fit num', cell: (i) => <Elapsed from={i.created_at} to={i.completed_at} /> },
          ]} />
        )}</Loaded>
      </Section>
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
      {open && <PayloadView payload={{ bytes: v.bytes, length: v.bytes.length }} title={v.key} />}
    </li>
  )
}

/** Edits one entry, shows what changes, and saves only if the state is still the one that was edited. */
function EditValue({ service, objectKey, scope, state, value, close }: { service: string; objectKey: string; scope: string; state: Loadedstate; value: Value | undefined; close: () => void }) {
  const binary = value !== undefined && value.text === undefined
  const before = useMemo(() => {
    if (!value?.text) return ''
    const d = decode(value.bytes)
    return d.kind === 'json' && typeof d.json === 'object' ? JSON.stringify(d.json, null, 2) : value.text
  }, [value])
  const [name, setName] = useState(value?.key ?? '')
  const [text, setText] = useState(before)
  const [review, setReview] = useState(false)
  const [error, setError] = useState<Error>()
  const [busy, setBusy] = useState(false)
  const wasJSON = value === undefined || decode(value.bytes).kind === 'json'
  const compact = (): string => {
    if (!value || text === before) return text
    try {
      // JSON that was compact stays so.
      return value.text !== undefined && !value.text.includes('\n') ? JSON.stringify(JSON.parse(text)) : text
    } catch {
      return text
    }
  }
  const broken = wasJSON && text.trim() !== '' && decode(new TextEncoder().encode(text)).kind !== 'json'
  const taken = value === undefined && state.values.some((v) => v.key === name)
  const save = (): void => {
    setBusy(true)
    setError(undefined)
    const next: Value = { key: name, text: compact(), bytes: new Uint8Array() }
    writeState(service, objectKey, scope, state.version, [...state.values.filter((v) => v.key !== name), next]).then(() => {
      toast('ok', 'The state was changed')
      refreshAll()
      close()
    }, (err: Error) => {
      setBusy(false)
      setError(err)
    })
  }
  const conflict = error instanceof APIError && (error.status === 409 || error.status === 412)
  return (
    <form onSubmit={(e) => {
      e.preventDefault()
      if (review) save()
      else setReview(true)
    }}>
      <DialogFrame title={value ? <>Edit <bdi class="mono">{value.key}</bdi></> : 'Add an entry'} close={close} actions={
        <>{review && <Button icon="left" onClick={() => setReview(false)}>Back</Button>}<Button onClick={close}>Cancel</Button><Button kind="primary" type="submit" busy={busy} disabled={binary || name === '' || taken || (text === before && value !== undefined)}>{review ? 'Save' : 'Review'}</Button></>
      }>
        {binary && <p>This value is not text and cannot be edited here.</p>}
        {!binary && !review && (
          <>
            {value === undefined && <label class="field"><span class="field-label">Name</span><input class="input mono" value={name} autofocus onInput={(e) => setName(e.currentTarget.value)} />{taken && <span class="field-error">There is an entry with this name.</span>}</label>}
            <div class="field"><span class="field-label">Value</span><Editor language="json" label="Value" value={text} onChange={setText} minHeight="160px" onSubmit={() => setReview(true)} /></div>
            {broken && <p class="notice">This is not valid JSON. Handlers of most SDKs expect JSON.</p>}
          </>
        )}
        {review && (
          <>
            <p class="muted">This changes <bdi class="mono">{service}/{objectKey}</bdi>. The change waits for the invocation that holds the key.</p>
            <pre class="diff" tabIndex={0} aria-label="Changes">{diffLines(before, text).map((l, i) => <div key={i} class={l.kind}>{l.kind === 'add' ? '+ ' : l.kind === 'remove' ? '− ' : '  '}{l.text}</div>)}</pre>
          </>
        )}
        {error && <div class="dialog-error" role="alert"><p>{error.message}</p>{conflict && <p>Close this dialog and edit the current value. <Copy text={text} label="Copy my text" /></p>}</div>}
      </DialogFrame>
    </form>
  )
}
