// The awakeables that invocations wait for, and their completion.

import { useEffect, useState } from 'preact/hooks'
import { get, withQuery } from '../api/client.ts'
import type { Awakeable, Service, Version } from '../api/types.ts'
import { awakeableFilters, findAwakeables, parseAwakeableFilters, type AwakeableFilters } from '../lib/awakeables.ts'
import { shellQuote } from '../lib/format.ts'
import { validJSON } from '../lib/json.ts'
import { refreshAll } from '../live.ts'
import { useResource } from '../resource.ts'
import { href, navigate, query, segment } from '../router.ts'
import { roles } from '../session.ts'
import { Button, Command, Elapsed, Empty, Field, ID, Loaded, PageHead, Status, Target, Unseen } from '../ui/basic.tsx'
import { Editor } from '../ui/editor.tsx'
import { useSubmission } from '../ui/form.tsx'
import { DialogFrame, openDialog, toast } from '../ui/overlay.tsx'
import { Table } from '../ui/table.tsx'
import { Pager } from './common.tsx'
import { ingressNeeds } from './service.tsx'
import { Completion } from './wait-chain.tsx'

const pageSize = 100

interface Page {
  awakeables: Awakeable[]
  next_cursor?: string
}

export function Awakeables() {
  const filters = parseAwakeableFilters(query.value)
  const cursor = query.value.get('cursor') ?? ''
  const params = { ...filters, cursor, limit: pageSize }
  const list = useResource(`awakeables:${JSON.stringify(params)}`, (s) => get<Page>(withQuery('/awakeables', params), s), { every: 5000, keep: true, topics: ['invocations'] })
  const filtered = awakeableFilters.some((name) => filters[name] !== undefined)
  const to = (changes: Record<string, string | undefined>): string => href('/awakeables', { ...filters, ...changes })
  return (
    <>
      <PageHead title="Awakeables" summary="What invocations wait for from outside, the longest waiting first" />
      <Find filters={filters} />
      <Loaded of={list} what="The awakeables could not be listed">{(page) => (
        <>
          {page.awakeables.length === 0
            ? <None filters={filters} filtered={filtered} more={page.next_cursor !== undefined} />
            : (
              <Table label="Awakeables" rows={page.awakeables} keyOf={(a) => a.id} hrefOf={(a) => href(`/invocations/${segment(a.invocation_id)}`)} dim={list.changing} columns={[
                { id: 'since', title: 'Waiting for', class: 'fit num', cell: (a) => <Elapsed from={a.waiting_since} /> },
                { id: 'target', title: 'Target', class: 'grow', cell: (a) => <Target service={a.target_service_name} name={a.target_service_ty === 'service' ? undefined : a.target_service_key ?? ''} handler={a.target_handler_name} link={href(`/invocations/${segment(a.invocation_id)}`)} /> },
                { id: 'id', title: 'Awakeable', class: 'c-idcol', cell: (a) => <ID id={a.id} /> },
                { id: 'status', title: 'Status', class: 'fit', cell: (a) => <Status status={a.invocation_status} /> },
                { id: 'actions', title: <Unseen>Actions</Unseen>, class: 'fit', cell: (a) => <Completion id={a.id} /> },
              ]} />
            )}
          {(page.awakeables.length > 0 || page.next_cursor || cursor) && <Pager count={page.awakeables.length} noun="awakeable" cursor={cursor} next={page.next_cursor} changing={list.changing} to={(cursor) => to({ cursor })} />}
        </>
      )}</Loaded>
    </>
  )
}

/** Says why the list is empty. */
function None({ filters, filtered, more }: { filters: AwakeableFilters; filtered: boolean; more: boolean }) {
  const late = 'A handler that runs is listed when it suspends, after its inactivity timeout (a minute unless configured otherwise).'
  if (more) return <Empty title="None so far" icon="link"><p>The invocations read so far wait for something else. Next reads further ones.</p></Empty>
  if (filters.id) return <Empty title="Nothing waits for this awakeable" icon="link"><p>It is completed, its invocation has ended, or its handler is running. {late}</p><p><a href={href('/awakeables')}>Show all awakeables</a></p></Empty>
  if (filtered) return <Empty title="No awakeable matches" icon="link"><p>{late}</p><p><a href={href('/awakeables')}>Show all awakeables</a></p></Empty>
  return <Empty title="Nothing waits for an awakeable" icon="link"><p>A handler creates an awakeable, passes its id to another system and waits until that completes it. {late}</p></Empty>
}

function Find({ filters }: { filters: AwakeableFilters }) {
  const services = useResource('services', (s) => get<{ services: Service[] }>('/services', s), { every: 30_000 })
  const known = services.data?.services ?? []
  const handlers = known.find((s) => s.name === filters.service)?.handlers.map((h) => h.name) ?? []
  const shown = filters.id ?? filters.key ?? ''
  const [text, setText] = useState(shown)
  useEffect(() => setText(shown), [shown])
  const go = (changed: AwakeableFilters): void => navigate(href('/awakeables', { ...changed }))
  const options = (all: string[], chosen: string | undefined) => [...new Set([...all, ...(chosen ? [chosen] : [])])].map((name) => <option key={name} value={name}>{name}</option>)
  return (
    <form class="find-form page-find" role="search" onSubmit={(e) => {
      e.preventDefault()
      const wanted = findAwakeables(text, filters)
      if ('invocation' in wanted) navigate(href(`/invocations/${segment(wanted.invocation)}`))
      else go(wanted.filters)
    }}>
      <select class="input small" aria-label="Service" value={filters.service ?? ''} onChange={(e) => go({ ...filters, id: undefined, handler: undefined, service: e.currentTarget.value || undefined })}>
        <option value="">all services</option>
        {options(known.map((s) => s.name), filters.service)}
      </select>
      {(filters.service || filters.handler) && (
        <select class="input small" aria-label="Handler" value={filters.handler ?? ''} onChange={(e) => go({ ...filters, id: undefined, handler: e.currentTarget.value || undefined })}>
          <option value="">all handlers</option>
          {options(handlers, filters.handler)}
        </select>
      )}
      <input class="input small" type="search" placeholder="Awakeable id, invocation id or key" aria-label="Awakeable id, invocation id or key" value={text} onInput={(e) => setText(e.currentTarget.value)} />
      <Button small type="submit">Find</Button>
    </form>
  )
}

/** Asks for the value or the reason, and completes an awakeable. */
export function completeAwakeable(id: string, reject: boolean): void {
  void openDialog(reject ? 'Reject this awakeable?' : 'Resolve this awakeable?', (close) => <Complete id={id} reject={reject} close={close} />)
}

const awaited = async (id: string, signal?: AbortSignal): Promise<Awakeable | undefined> => (await get<Page>(withQuery('/awakeables', { id }), signal)).awakeables[0]

function Complete({ id, reject, close }: { id: string; reject: boolean; close: () => void }) {
  const version = useResource('version', (s) => get<Version>('/version', s), { every: 0 })
  const services = useResource('services', (s) => get<{ services: Service[] }>('/services', s), { every: 0 })
  const of = useResource(`awakeable:${id}`, async (s) => (await awaited(id, s)) ?? null, { every: 5000, topics: ['invocations'] })
  const [text, setText] = useState('')
  const [token, setToken] = useState('')
  const service = services.data?.services.find((s) => s.name === of.data?.target_service_name)
  const needs = service && ingressNeeds(service)
  const broken = !reject && text.trim() !== '' && !validJSON(text)
  const verb = reject ? 'reject' : 'resolve'
  const base = (version.data?.ingress_endpoint ?? '').replace(/\/$/, '')
  const form = useSubmission(close, async () => {
    // The ingress accepts completions of any awakeable: later ones have no effect.
    if (!(await awaited(id))) throw new Error('Nothing waits for it any longer. Nothing was sent.')
    await send(`${base}/platform/awakeables/${segment(id)}/${verb}`, text, reject, token.trim())
    toast('ok', `The awakeable was ${reject ? 'rejected' : 'resolved'}`)
    refreshAll()
  })
  return (
    <form onSubmit={form.submit}>
      <DialogFrame title={reject ? 'Reject this awakeable?' : 'Resolve this awakeable?'} close={close} actions={
        <><Button onClick={close}>Close</Button><Button type="submit" kind={reject ? 'danger' : 'primary'} busy={form.busy} disabled={broken || base === '' || of.data === null}>{form.busy ? 'Working…' : reject ? 'Reject awakeable' : 'Resolve awakeable'}</Button></>
      }>
        {of.data && <p class="mono wrap"><bdi>{of.data.target}</bdi></p>}
        <p><ID id={id} /></p>
        {of.data === null
          ? <p class="dialog-error" role="alert">Nothing waits for it: it is completed, its invocation has ended, or its handler is running.</p>
          : <p>{reject ? 'The handler gets a terminal error with this reason.' : 'The handler gets this value and continues.'} The first completion counts; it cannot be taken back.</p>}
        {reject
          ? <Field label="Reason"><input class="input" value={text} autofocus onInput={(e) => setText(e.currentTarget.value)} /></Field>
          : (
            <div class="field">
              <span class="field-label">Value, as JSON</span>
              <Editor language="json" label="Value" value={text} onChange={setText} minHeight="72px" handle={(editor) => editor?.focus()} />
              <span class={broken ? 'field-error' : 'field-hint'}>{broken ? 'This is not valid JSON. Text needs quotes.' : 'Empty: no value.'}</span>
            </div>
          )}
        {needs === 'mtls' ? <p class="muted">Callers of {service!.name} need a client certificate.</p> : needs && (
          <Field label="Token" hint={`Your login is not sent to the ingress. It requires a token ${needs === 'jwt' ? 'of the identity provider' : `with the role ${roles.complete} or ${roles.invoke}`}.`}>
            <input class="input mono" type="password" autocomplete="off" value={token} onInput={(e) => setToken(e.currentTarget.value)} />
          </Field>
        )}
        {form.error && <p class="dialog-error" role="alert">{form.error.message}</p>}
        <Command text={`platform awakeables ${verb} ${id}${text.trim() ? ` ${shellQuote(text.trim())}` : ''}`} />
      </DialogFrame>
    </form>
  )
}

async function send(url: string, text: string, reject: boolean, token: string): Promise<void> {
  const body = reject ? text : text.trim()
  let response: Response
  try {
    response = await fetch(url, {
      method: 'POST', credentials: 'omit', signal: AbortSignal.timeout(30_000), body,
      headers: { 'content-type': reject ? 'text/plain' : 'application/json', ...(token ? { authorization: `Bearer ${token}` } : {}) },
    })
  } catch {
    throw new Error('The browser cannot reach the ingress. Run the command below where it is reachable.')
  }
  if (response.ok) return
  const answer = await response.text()
  try {
    throw new Error((JSON.parse(answer) as { message: string }).message)
  } catch (err) {
    throw err instanceof SyntaxError ? new Error(`The ingress responded with status ${response.status}.`) : err
  }
}
