// Messages and dialogs above the page.

import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { signal } from '@preact/signals'
import { APIError } from '../api/client.ts'
import { place } from '../router.ts'
import { Icon } from './icons.tsx'

interface Toast {
  id: number
  kind: 'ok' | 'error' | 'info'
  text: ComponentChildren
}

const toasts = signal<Toast[]>([])
let next = 1

export function toast(kind: Toast['kind'], text: ComponentChildren): void {
  const id = next++
  toasts.value = [...toasts.value.slice(-3), { id, kind, text }]
  setTimeout(() => dismiss(id), kind === 'error' ? 12_000 : 5000)
}

function dismiss(id: number): void {
  toasts.value = toasts.value.filter((t) => t.id !== id)
}

export function toastError(err: unknown, what?: string): void {
  const text = err instanceof Error ? err.message : String(err)
  const code = err instanceof APIError && err.code && !text.includes(err.code) ? ` (${err.code})` : ''
  toast('error', what ? `${what}: ${text}${code}` : text + code)
}

export function Toasts() {
  const ref = useRef<HTMLDivElement>(null)
  const shown = toasts.value.length > 0
  const above = dialogs.value
  useEffect(() => {
    // A modal dialog covers everything that was shown before it, so the messages are shown again.
    if (ref.current?.matches(':popover-open')) ref.current.hidePopover()
    if (shown) ref.current?.showPopover()
  }, [shown, above])
  return (
    <div role="status" aria-live="polite">
      <div class="toasts" popover="manual" ref={ref}>
        {toasts.value.map((t) => (
          <div key={t.id} class={`toast ${t.kind}`}>
            <Icon name={t.kind === 'ok' ? 'check' : t.kind === 'error' ? 'alert' : 'info'} />
            <div>{t.text}</div>
            <button type="button" class="copy" aria-label="Dismiss" onClick={() => dismiss(t.id)}><Icon name="close" size={13} /></button>
          </div>
        ))}
      </div>
    </div>
  )
}

interface Open {
  id: number
  render: (close: () => void) => ComponentChildren
  closed: () => void
  wide: boolean
  label: string
}

const dialogs = signal<Open[]>([])

/** Opens a dialog; the promise ends when it is closed. */
export function openDialog(label: string, render: Open['render'], wide = false): Promise<void> {
  return new Promise((resolve) => {
    dialogs.value = [...dialogs.value, { id: next++, render, closed: resolve, wide, label }]
  })
}

export function closeDialogs(): void {
  for (const d of dialogs.peek()) d.closed()
  dialogs.value = []
}

// A dialog belongs to its page.
let shownOn = place.peek().path
place.subscribe(({ path }) => {
  if (path === shownOn) return
  shownOn = path
  closeDialogs()
})

export const dialogOpen = (): boolean => dialogs.peek().length > 0

export function Dialogs() {
  return <>{dialogs.value.map((d) => <DialogBox key={d.id} of={d} />)}</>
}

function DialogBox({ of }: { of: Open }) {
  const ref = useRef<HTMLDialogElement>(null)
  const close = (): void => {
    dialogs.value = dialogs.value.filter((d) => d !== of)
    of.closed()
  }
  useLayoutEffect(() => { // before the next key is pressed
    const before = document.activeElement as HTMLElement | null
    ref.current?.showModal()
    const focus = ref.current?.querySelector<HTMLElement>('[autofocus]')
    focus?.focus()
    return () => before?.focus?.()
  }, [])
  return (
    <dialog ref={ref} class={of.wide ? 'dialog wide' : 'dialog'} aria-label={of.label}
      onCancel={(e) => {
        e.preventDefault()
        close()
      }}
      onPointerDown={(e) => {
        if (e.target === ref.current) close()
      }}>
      <div class="dialog-box">{of.render(close)}</div>
    </dialog>
  )
}

export function DialogFrame({ title, children, actions, close }: { title: ComponentChildren; children: ComponentChildren; actions?: ComponentChildren; close: () => void }) {
  return (
    <>
      <header class="dialog-head">
        <h2>{title}</h2>
        <button type="button" class="copy" aria-label="Close" onClick={close}><Icon name="close" /></button>
      </header>
      <div class="dialog-body">{children}</div>
      {actions && <footer class="dialog-foot">{actions}</footer>}
    </>
  )
}

export interface Question {
  title: string
  body?: ComponentChildren
  action: string
  danger?: boolean
  /** A word to type before the action is possible. */
  typed?: string
  /** Offered when the server refuses the action unless it is forced. */
  force?: string
}

/** Asks before something is done. Runs the action in the dialog, where its failure is shown. */
export function ask(question: Question, run: (force: boolean) => Promise<void>): Promise<void> {
  return openDialog(question.title, (close) => <Confirm question={question} run={run} close={close} />)
}

function Confirm({ question, run, close }: { question: Question; run: (force: boolean) => Promise<void>; close: () => void }) {
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<Error>()
  const [typed, setTyped] = useState('')
  const [force, setForce] = useState(false)
  const [refused, setRefused] = useState(false)
  const ready = (question.typed === undefined || typed === question.typed) && (!refused || force)
  const submit = (event: Event): void => {
    event.preventDefault()
    if (!ready || busy) return
    setBusy(true)
    setError(undefined)
    run(force).then(close, (err: unknown) => {
      setError(err as Error)
      setRefused(question.force !== undefined && err instanceof APIError && err.status === 409)
      setBusy(false)
    })
  }
  return (
    <form onSubmit={submit}>
      <DialogFrame title={question.title} close={close} actions={
        <>
          <button type="button" class="button plain" onClick={close} autofocus={question.typed === undefined && question.danger}><span>Close</span></button>
          <button type="submit" class={`button ${question.danger ? 'danger' : 'primary'}`} disabled={!ready || busy} autofocus={question.typed === undefined && !question.danger}>
            <span>{busy ? 'Working…' : question.action}</span>
          </button>
        </>
      }>
        {question.body}
        {question.typed !== undefined && (
          <label class="field">
            <span class="field-label">Type <b class="mono">{question.typed}</b> to confirm</span>
            <input class="input" value={typed} autofocus autocomplete="off" onInput={(e) => setTyped(e.currentTarget.value)} />
          </label>
        )}
        {error && <p class="dialog-error" role="alert">{withoutForce(error.message)}</p>}
        {refused && <Force label={question.force!} checked={force} onChange={setForce} />}
      </DialogFrame>
    </form>
  )
}

/** A refusal without the advice for other clients to force it. */
export const withoutForce = (message: string): string => message.replace(/; to proceed anyway, repeat it with --force .*$/, '').replace(/, or use force if it is lost for good$/, '')

/** A check box that confirms what the server has refused. */
export function Force({ label, checked, onChange }: { label: string; checked: boolean; onChange: (checked: boolean) => void }) {
  return <label class="force"><input type="checkbox" checked={checked} onChange={(e) => onChange(e.currentTarget.checked)} /><span>{label}</span></label>
}
