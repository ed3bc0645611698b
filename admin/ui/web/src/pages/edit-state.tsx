// Edits the state of a key: several entries in one change, which is reviewed and takes effect only
// if the state has not changed in the meantime.

import { useState } from 'preact/hooks'
import { APIError, request, withQuery } from '../api/client.ts'
import type { StateAnswer } from '../api/types.ts'
import { diffLines } from '../lib/diff.ts'
import { reformat } from '../lib/json.ts'
import { decode, fromBase64 } from '../lib/payload.ts'
import { refreshAll } from '../live.ts'
import { segment } from '../router.ts'
import { Button, Copy, Field, Switch } from '../ui/basic.tsx'
import { Editor } from '../ui/editor.tsx'
import { DialogFrame, openDialog, toast } from '../ui/overlay.tsx'

/** The key of an object or workflow. */
export interface ObjectName {
  service: string
  key: string
  scope: string
}

export interface Value {
  key: string
  bytes: Uint8Array
  text: string | undefined
}

export interface State {
  version: string
  values: Value[]
}

export async function readState({ service, key, scope }: ObjectName, signal?: AbortSignal): Promise<State> {
  const answer = await request<StateAnswer>(withQuery(`/services/${segment(service)}/state`, new URLSearchParams({ object_key: key, ...(scope ? { scope } : {}) })), { signal })
  return { version: answer.version, values: answer.state.map((e) => ({ key: e.key, bytes: fromBase64(e.value), text: e.value_utf8 })) }
}

/** Replaces the state, and says so. Values that are not text are sent as bytes. If an invocation holds the key, the change waits for it. */
export async function writeState({ service, key, scope }: ObjectName, version: string, values: Pick<Value, 'key' | 'bytes' | 'text'>[]): Promise<void> {
  const { status } = await request<{ status: string }>(`/services/${segment(service)}/state`, {
    method: 'POST', timeout: 30_000,
    body: { object_key: key, version, ...(scope ? { scope } : {}), new_state: Object.fromEntries(values.map((v) => [v.key, v.text ?? [...v.bytes]])) },
  })
  toast('ok', status === 'queued' ? 'The state will be changed when the invocation that holds the key ends' : 'The state was changed')
}

/** An entry that is being edited; without value it is new. */
interface Draft {
  id: number
  value: Value | undefined
  name: string
  /** As shown in the editor. */
  before: string
  text: string
  deleted: boolean
}

let lastID = 0

function draftOf(value: Value | undefined): Draft {
  let before = value?.text ?? ''
  if (value?.text) {
    const d = decode(value.bytes)
    if (d.kind === 'json' && typeof d.json === 'object') before = reformat(d.text!, 2)
  }
  return { id: ++lastID, value, name: value?.key ?? '', before, text: before, deleted: false }
}

const binary = (d: Draft): boolean => d.value !== undefined && d.value.text === undefined
const changed = (d: Draft): boolean => d.deleted || d.value === undefined || d.text !== d.before

/** Compact JSON remains compact. */
function stored(d: Draft): string {
  if (!d.value?.text || d.value.text.includes('\n')) return d.text
  try {
    JSON.parse(d.text) // refuses what is not valid
    return reformat(d.text, 0)
  } catch {
    return d.text
  }
}

/** The whole state after the edit. */
function edited(state: State, drafts: Draft[]): Value[] {
  const touched = new Map(drafts.filter(changed).map((d) => [d.name, d]))
  const kept = state.values.filter((v) => !touched.has(v.key))
  const next = [...touched.values()].filter((d) => !d.deleted).map((d) => ({ key: d.name, text: stored(d), bytes: new Uint8Array() }))
  return [...kept, ...next]
}

export function editState(object: ObjectName, state: State, value?: Value): void {
  void openDialog('Edit state', (close) => <EditState object={object} state={state} first={value} close={close} />, true)
}

function EditState({ object, state, first, close }: { object: ObjectName; state: State; first: Value | undefined; close: () => void }) {
  const [drafts, setDrafts] = useState(() => [draftOf(first)])
  const [review, setReview] = useState(false)
  const [error, setError] = useState<Error>()
  const [busy, setBusy] = useState(false)
  const set = (id: number, part: Partial<Draft>): void => setDrafts((list) => list.map((d) => (d.id === id ? { ...d, ...part } : d)))
  const problem = (d: Draft): string | undefined =>
    d.value !== undefined ? undefined : d.name === '' ? '' : state.values.some((v) => v.key === d.name) || drafts.some((o) => o !== d && o.name === d.name) ? 'There is an entry with this name.' : undefined
  const others = state.values.filter((v) => !drafts.some((d) => d.value === v))
  const ready = drafts.some(changed) && drafts.every((d) => problem(d) === undefined)
  const save = (): void => {
    setBusy(true)
    setError(undefined)
    writeState(object, state.version, edited(state, drafts)).then(() => {
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
      else if (ready) setReview(true)
    }}>
      <DialogFrame title={<>Edit the state of <bdi class="mono">{object.service}/{object.key}</bdi></>} close={close} actions={
        <>{review && <Button icon="left" onClick={() => setReview(false)}>Back</Button>}<Button onClick={close}>Close</Button><Button kind="primary" type="submit" busy={busy} disabled={!ready}>{review ? 'Save' : 'Review'}</Button></>
      }>
        {!review && drafts.map((d) => (
          <Entry key={d.id} d={d} problem={problem(d)} set={(part) => set(d.id, part)} submit={() => setReview(true)} remove={drafts.length > 1 ? () => setDrafts(drafts.filter((o) => o !== d)) : undefined} />
        ))}
        {!review && (
          <div class="invoke-row">
            {others.length > 0 && (
              <select class="input small" aria-label="Also edit" value="" onChange={(e) => {
                const value = others.find((v) => v.key === e.currentTarget.value)
                e.currentTarget.value = ''
                if (value) setDrafts([...drafts, draftOf(value)])
              }}>
                <option value="">Also edit…</option>
                {others.map((v) => <option key={v.key} value={v.key}>{v.key}</option>)}
              </select>
            )}
            <Button small icon="plus" onClick={() => setDrafts([...drafts, draftOf(undefined)])}>Also add an entry</Button>
          </div>
        )}
        {review && (
          <>
            <p class="muted">The change waits for the invocation that holds the key. All entries change at the same time.</p>
            {drafts.filter(changed).map((d) => (
              <div key={d.id}>
                <h3><bdi class="mono">{d.name}</bdi>{d.deleted ? ' is deleted' : d.value === undefined ? ' is added' : ''}</h3>
                <pre class="diff" tabIndex={0} aria-label={`Changes of ${d.name}`}>{diffLines(d.before, d.deleted ? '' : d.text).map((l, i) => <div key={i} class={l.kind}>{l.kind === 'add' ? '+ ' : l.kind === 'remove' ? '− ' : '  '}{l.text}</div>)}</pre>
              </div>
            ))}
          </>
        )}
        {error && <div class="dialog-error" role="alert"><p>{error.message}</p>{conflict && <p>Close this dialog and edit the current values. <Copy text={drafts.map((d) => d.text).join('\n')} label="Copy my text" /></p>}</div>}
      </DialogFrame>
    </form>
  )
}

function Entry({ d, problem, set, submit, remove }: { d: Draft; problem: string | undefined; set: (part: Partial<Draft>) => void; submit: () => void; remove: (() => void) | undefined }) {
  const wasJSON = d.value === undefined || decode(d.value.bytes).kind === 'json'
  const broken = wasJSON && !d.deleted && d.text.trim() !== '' && decode(new TextEncoder().encode(d.text)).kind !== 'json'
  return (
    <section class="state-draft" aria-label={d.name || 'New entry'}>
      <header>
        {d.value ? <bdi class="mono strong">{d.name}</bdi> : <Field label="Name" error={problem || undefined}><input class="input mono" value={d.name} autofocus onInput={(e) => set({ name: e.currentTarget.value })} /></Field>}
        <span class="grow" />
        {d.value && <Switch checked={d.deleted} onChange={(deleted) => set({ deleted })}>Delete</Switch>}
        {remove && <Button small kind="ghost" icon="close" label="Leave out of this edit" onClick={remove} />}
      </header>
      {binary(d) && <p>This value is not text. It can be deleted, but not edited here.</p>}
      {!binary(d) && !d.deleted && <Editor language="json" label={d.value ? `Value of ${d.name}` : 'Value'} value={d.text} onChange={(text) => set({ text })} minHeight="120px" maxHeight="34vh" onSubmit={submit} />}
      {broken && <p class="notice">This is not valid JSON. Handlers of most SDKs expect JSON.</p>}
    </section>
  )
}
