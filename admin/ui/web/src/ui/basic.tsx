// Small parts of pages.

import { cloneElement, isValidElement, type ComponentChildren, type VNode } from 'preact'
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { signal } from '@preact/signals'
import { APIError } from '../api/client.ts'
import { serverNow } from '../lib/clock.ts'
import { zone } from '../prefs.ts'
import { formatAbsolute, formatDuration, formatRelative, parseTime } from '../lib/time.ts'
import { href, segment } from '../router.ts'
import { Icon, StatusShape, type IconName, type Shape } from './icons.tsx'
import { refusalOf, type Permission } from '../session.ts'
import { toast } from './overlay.tsx'

/** The current time of the server, by the second. */
export const now = signal(serverNow())
setInterval(() => {
  if (document.visibilityState !== 'hidden') now.value = serverNow()
}, 1000)

export function Time({ at, absolute }: { at: string | number | undefined; absolute?: boolean }) {
  const t = parseTime(at)
  if (t === undefined) return <span class="faint">–</span>
  const whole = formatAbsolute(t, zone.value)
  return <time dateTime={new Date(t).toISOString()} title={whole} class="num">{absolute ? whole : formatRelative(t, now.value)}</time>
}

/** The time from one moment to another, or to now. */
export function Elapsed({ from, to }: { from: string | number | undefined; to?: string | number | undefined }) {
  const a = parseTime(from)
  if (a === undefined) return <span class="faint">–</span>
  const b = parseTime(to) ?? Math.max(now.value, a)
  return <span class="num">{formatDuration(b - a)}</span>
}

interface ButtonProps {
  children?: ComponentChildren
  icon?: IconName
  kind?: 'primary' | 'danger' | 'plain' | 'ghost'
  onClick?: (event: MouseEvent) => void
  disabled?: boolean
  title?: string
  label?: string
  small?: boolean
  type?: 'button' | 'submit'
  busy?: boolean
  pressed?: boolean
  expanded?: boolean
  class?: string
  /** The permission that the action requires: without it the button is disabled and explains why. */
  needs?: Permission | undefined
}

export function Button(p: ButtonProps) {
  const refusal = p.needs && refusalOf(p.needs)
  // A button without permission can be focused, so that its title is read.
  const refused = (e: MouseEvent): void => {
    e.preventDefault()
    toast('info', refusal)
  }
  return (
    <button type={p.type ?? 'button'} class={`button ${p.kind ?? 'plain'}${p.small ? ' small' : ''}${p.children ? '' : ' icon-only'} ${p.class ?? ''}`} onClick={refusal ? refused : p.onClick}
      disabled={p.disabled || p.busy} aria-disabled={refusal ? true : undefined} title={refusal ?? p.title ?? (p.children ? undefined : p.label)} aria-label={p.label} aria-pressed={p.pressed} aria-expanded={p.expanded} aria-busy={p.busy || undefined}>
      {p.icon && <Icon name={p.icon} size={p.small ? 14 : 16} />}
      {p.children && <span>{p.children}</span>}
    </button>
  )
}

/** A button that copies a text. */
export function Copy({ text, label = 'Copy' }: { text: string; label?: string }) {
  const [done, setDone] = useState(false)
  return (
    <button type="button" class="copy" aria-label={label} title={label} onClick={(event) => {
      event.stopPropagation()
      event.preventDefault()
      void copyText(text).then((ok) => {
        if (!ok) return toast('error', 'The browser does not allow copying here.')
        setDone(true)
        setTimeout(() => setDone(false), 1200)
      })
    }}>
      <Icon name={done ? 'check' : 'copy'} size={13} />
    </button>
  )
}

/** The clipboard exists only on secure origins; elsewhere a selection does the same. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    const area = document.createElement('textarea')
    area.value = text
    area.className = 'offscreen'
    document.body.append(area)
    area.select()
    const ok = document.execCommand('copy')
    area.remove()
    return ok
  }
}

/** An identifier, whose middle is elided if there is no space; it is copied as a whole. */
export function ID({ id, link, copy = true }: { id: string; link?: string | undefined; copy?: boolean }) {
  const cut = Math.max(0, id.length - 6)
  const parts = <><span class="id-head">{id.slice(0, cut)}</span><span class="id-tail">{id.slice(cut)}</span></>
  return (
    <span class="id mono" title={id}>
      {link ? <a class="id-text" href={link}>{parts}</a> : <span class="id-text">{parts}</span>}
      {copy && <Copy text={id} label="Copy id" />}
    </span>
  )
}

export function InvocationID({ id }: { id: string }) {
  return <ID id={id} link={href(`/invocations/${segment(id)}`)} />
}

export function DeploymentID({ id }: { id: string }) {
  return <ID id={id} link={href(`/deployments/${segment(id)}`)} />
}

/** Service, key and handler. Everything in it comes from users. */
export function Target({ service, name, handler, link }: { service: string; name?: string | undefined; handler: string; link?: string | undefined }) {
  const body = (
    <>
      <span class="t-service">{service}</span>
      {name !== undefined && <><span class="t-sep">/</span><bdi class="t-key">{name}</bdi></>}
      <span class="t-sep">/</span><span class="t-handler">{handler}</span>
    </>
  )
  const title = name === undefined ? `${service}/${handler}` : `${service}/${name}/${handler}`
  return link ? <a class="target" href={link} title={title}>{body}</a> : <span class="target" title={title}>{body}</span>
}

type Tone = 'ok' | 'bad' | 'warn' | 'busy' | 'idle'

const looks: Record<string, [Tone, Shape, string]> = {
  running: ['busy', 'run', 'Running'],
  ready: ['busy', 'ready', 'Ready'],
  pending: ['idle', 'wait', 'Pending'],
  scheduled: ['idle', 'later', 'Scheduled'],
  suspended: ['idle', 'sleep', 'Suspended'],
  'backing-off': ['warn', 'retry', 'Backing off'],
  paused: ['warn', 'pause', 'Paused'],
  completed: ['ok', 'ok', 'Completed'],
  success: ['ok', 'ok', 'Succeeded'],
  succeeded: ['ok', 'ok', 'Succeeded'],
  failure: ['bad', 'fail', 'Failed'],
  failed: ['bad', 'fail', 'Failed'],
  killed: ['bad', 'stop' as Shape, 'Killed'],
  cancelled: ['idle', 'none', 'Cancelled'],
  stopped: ['idle', 'none', 'Stopped'],
  done: ['ok', 'ok', 'Done'],
  starting: ['idle', 'ready', 'Starting'],
  blocked: ['bad', 'fail', 'Blocked'],
  throttled: ['warn', 'wait', 'Throttled'],
  draining: ['idle', 'none', 'Draining'],
  error: ['bad', 'fail', 'Error'],
  orphaned: ['bad', 'fail', 'Orphaned'],
  finished: ['ok', 'ok', 'Finished'],
}

export function statusLook(status: string, result?: string): { tone: Tone; shape: Shape; title: string } {
  const [tone, shape, title] = looks[status === 'completed' && result ? result : status] ?? (['idle', 'none', status] as [Tone, Shape, string])
  return { tone, shape: (shape as string) === 'stop' ? 'fail' : shape, title }
}

/** How an invocation that failed ended, from its failure. */
export function resultOf(i: { status: string; completion_result?: string; completion_failure?: string }): string | undefined {
  if (i.status !== 'completed') return undefined
  if (i.completion_result === 'failure' && i.completion_failure) {
    if (/^\[409[^\]]*\] cancelled$/i.test(i.completion_failure)) return 'cancelled'
    if (/^\[409[^\]]*\] killed$/i.test(i.completion_failure)) return 'killed'
  }
  return i.completion_result ?? 'success'
}

export function Status({ status, result, note }: { status: string; result?: string | undefined; note?: ComponentChildren }) {
  const { tone, shape, title } = statusLook(status, result)
  return (
    <span class={`status ${tone}`}>
      <StatusShape shape={shape} />
      <span>{title}</span>
      {note && <span class="status-note">{note}</span>}
    </span>
  )
}

export function Pill({ children, tone = 'idle', title }: { children: ComponentChildren; tone?: Tone | 'accent'; title?: string }) {
  return <span class={`pill ${tone}`} title={title}>{children}</span>
}

const typeNames: Record<string, string> = {
  Service: 'Service', VirtualObject: 'Object', Workflow: 'Workflow', service: 'Service', virtual_object: 'Object', workflow: 'Workflow',
}
export const typeName = (ty: string): string => typeNames[ty] ?? ty

export function PageHead({ title, summary, children, icon, id }: { title: ComponentChildren; summary?: ComponentChildren; children?: ComponentChildren; icon?: IconName; id?: string }) {
  return (
    <header class="page-head" id={id}>
      <div class="page-title">
        <h1>{icon && <Icon name={icon} />}{title}</h1>
        {summary && <p class="summary">{summary}</p>}
      </div>
      {children && <div class="page-actions">{children}</div>}
    </header>
  )
}

export function Section({ title, children, actions, count, flush }: { title?: ComponentChildren; children: ComponentChildren; actions?: ComponentChildren; count?: ComponentChildren; flush?: boolean }) {
  return (
    <section class={`panel${flush ? ' flush' : ''}`}>
      {(title || actions) && (
        <header class="panel-head">
          {title && <h2>{title}{count !== undefined && <span class="count num">{count}</span>}</h2>}
          {actions && <div class="panel-actions">{actions}</div>}
        </header>
      )}
      {children}
    </section>
  )
}

/** Text for screen readers only. */
export function Unseen({ children }: { children: ComponentChildren }) {
  return <span class="unseen">{children}</span>
}

export function Empty({ title, children, icon, page }: { title: string; children?: ComponentChildren; icon?: IconName; /** It is the whole page. */ page?: boolean }) {
  return (
    <div class="empty">
      {icon && <span class="empty-icon"><Icon name={icon} size={20} /></span>}
      {page ? <h1>{title}</h1> : <strong>{title}</strong>}
      {children && <div class="empty-text">{children}</div>}
    </div>
  )
}

/** After this many milliseconds, a page that is still loading says so. */
const slowAfter = 3000

export function Skeleton({ rows = 6 }: { rows?: number }) {
  const [slow, setSlow] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setSlow(true), slowAfter)
    return () => clearTimeout(timer)
  }, [])
  return (
    <div class="skeleton" aria-busy="true" aria-label="Loading" role="status">
      {slow && <p class="muted">Waiting for the server…</p>}
      {Array.from({ length: rows }, (_, i) => <i key={i} class={`w${(i * 7) % 5}`} />)}
    </div>
  )
}

/** A failed read: what, why, the code with its remedy, and a retry. */
export function ErrorBox({ error, retry, what }: { error: Error; retry?: (() => void) | undefined; what?: string }) {
  const code = error instanceof APIError ? error.code : undefined
  return (
    <div class="error-box" role="alert">
      <Icon name="alert" />
      <div class="error-text">
        <strong>{what ?? 'This could not be read'}</strong>
        <p>{error.message}</p>
        {code && <ErrorCodeHint code={code} />}
      </div>
      {retry && <Button icon="refresh" onClick={retry}>Retry</Button>}
    </div>
  )
}

interface ErrorCode {
  title: string
  meaning: string
  remedy: string
}

const remedies = new Map<string, Promise<ErrorCode | null>>()

/** The catalogue entry of an error code. */
export function useErrorCode(code: string | undefined): ErrorCode | null {
  const [known, setKnown] = useState<ErrorCode | null>(null)
  useEffect(() => {
    if (!code) return
    let live = true
    if (!remedies.has(code)) {
      remedies.set(code, fetch(`/errors/${encodeURIComponent(code)}`).then((r) => (r.ok ? (r.json() as Promise<ErrorCode>) : null)).catch(() => {
        remedies.delete(code) // another page reads it again
        return null
      }))
    }
    void remedies.get(code)!.then((v) => live && setKnown(v))
    return () => {
      live = false
    }
  }, [code])
  return known
}

export function ErrorCodeHint({ code }: { code: string }) {
  const known = useErrorCode(code)
  if (!known) return <p class="error-code"><Pill>{code}</Pill></p>
  return (
    <p class="error-code">
      <Pill>{code}</Pill> {known.title}. <span class="muted">{known.remedy.split('`').map((part, n) => (n % 2 === 0 ? part : <code key={n}>{part}</code>))}</span>
    </p>
  )
}

/** The data is old because reading it again fails. */
export function Stale({ error, at, retry }: { error: Error | undefined; at: number; retry: () => void }) {
  if (!error) return null
  return (
    <div class="stale" role="status">
      <Icon name="alert" size={14} />
      <span>Outdated, read <Time at={at + serverNow() - Date.now()} />: {error.message}</span>
      <button type="button" class="link" onClick={retry}>Retry</button>
    </div>
  )
}

/** Loading, failed, or the content. */
export function Loaded<T>({ of, children, rows, what }: { of: { data: T | undefined; error: Error | undefined; at: number; reload: () => void }; children: (data: T) => ComponentChildren; rows?: number; what?: string }) {
  if (of.data === undefined) {
    if (of.error) return <ErrorBox error={of.error} retry={of.reload} {...(what ? { what } : {})} />
    return <Skeleton {...(rows ? { rows } : {})} />
  }
  return <><Stale error={of.error} at={of.at} retry={of.reload} />{children(of.data)}</>
}

/** Name and value pairs. */
export function Facts({ rows }: { rows: ([string, ComponentChildren] | false | undefined | null)[] }) {
  return (
    <dl class="facts">
      {rows.map((r) => r && (
        <div key={r[0]}><dt>{r[0]}</dt><dd>{r[1]}</dd></div>
      ))}
    </dl>
  )
}

export function Segmented<T extends string>({ value, options, onChange, label }: { value: T; options: readonly (readonly [T, ComponentChildren])[]; onChange: (v: T) => void; label: string }) {
  return (
    <div class="segmented" role="group" aria-label={label}>
      {options.map(([v, text]) => (
        <button key={v} type="button" aria-pressed={v === value} class={v === value ? 'on' : ''} onClick={() => onChange(v)}>{text}</button>
      ))}
    </div>
  )
}

export function Switch({ checked, onChange, children }: { checked: boolean; onChange: (v: boolean) => void; children: ComponentChildren }) {
  return (
    <label class="switch">
      <input type="checkbox" role="switch" checked={checked} onChange={(e) => onChange(e.currentTarget.checked)} />
      <span class="switch-track" aria-hidden="true" />
      <span>{children}</span>
    </label>
  )
}

/** A labelled input. Hint and error describe it; they are not part of its name. */
export function Field({ label, hint, error, children }: { label: string; hint?: ComponentChildren; error?: string | undefined; children: ComponentChildren }) {
  const id = useId()
  const note = error ? <span class="field-error" id={`${id}-note`}>{error}</span> : hint ? <span class="field-hint" id={`${id}-note`}>{hint}</span> : null
  const input = isValidElement(children) ? cloneElement(children as VNode, { id, 'aria-describedby': note ? `${id}-note` : undefined, 'aria-invalid': error ? true : undefined }) : children
  return (
    <div class="field">
      <label class="field-label" for={id}>{label}</label>
      {input}
      {note}
    </div>
  )
}

/** Places a list below an element, with its right edge, or above it if there is more space. */
function placeBelow(list: HTMLElement, anchor: HTMLElement): void {
  const at = anchor.getBoundingClientRect()
  const { clientWidth: width, clientHeight: height } = document.documentElement
  const fits = at.bottom + 4 + list.offsetHeight <= height || at.top < height - at.bottom
  list.style.top = `${Math.max(4, fits ? at.bottom + 4 : at.top - 4 - list.offsetHeight)}px`
  list.style.left = `${Math.max(4, Math.min(at.right, width - 4) - list.offsetWidth)}px`
}

/** A menu that opens below its button. */
export function Menu({ label, icon, items, children, kind, small }: {
  label: string
  icon?: IconName
  kind?: 'plain' | 'ghost' | 'primary'
  small?: boolean
  children?: ComponentChildren
  items: ({ title: ComponentChildren; hint?: string; icon?: IconName; danger?: boolean; disabled?: boolean; checked?: boolean; keep?: boolean; needs?: Permission; run: () => void } | 'line')[]
}) {
  const [open, setOpen] = useState(false)
  const box = useRef<HTMLDivElement>(null)
  // Before the menu is painted, so that a key which is pressed as soon as it can be seen has its effect.
  useLayoutEffect(() => {
    if (!open) return
    const away = (e: Event): void => {
      if (!box.current?.contains(e.target as Node)) setOpen(false)
    }
    const keys = (e: KeyboardEvent): void => {
      if (e.key === 'Escape') {
        setOpen(false)
        e.stopPropagation()
        box.current?.querySelector('button')?.focus()
      }
      if (e.key !== 'ArrowDown' && e.key !== 'ArrowUp') return
      e.preventDefault()
      const list = [...(box.current?.querySelectorAll<HTMLElement>('[role^=menuitem]:not(:disabled)') ?? [])]
      const i = list.indexOf(document.activeElement as HTMLElement)
      list[(i + (e.key === 'ArrowDown' ? 1 : list.length - 1)) % list.length]?.focus()
    }
    document.addEventListener('pointerdown', away)
    document.addEventListener('keydown', keys, true)
    // In the top layer: a table, which scrolls, would cut the menu off.
    const list = box.current?.querySelector<HTMLElement>('[role=menu]')
    const follow = (): void => {
      if (list && box.current) placeBelow(list, box.current)
    }
    list?.showPopover()
    follow()
    window.addEventListener('scroll', follow, true)
    window.addEventListener('resize', follow)
    box.current?.querySelector<HTMLElement>('[role^=menuitem]')?.focus({ preventScroll: true })
    return () => {
      document.removeEventListener('pointerdown', away)
      document.removeEventListener('keydown', keys, true)
      window.removeEventListener('scroll', follow, true)
      window.removeEventListener('resize', follow)
    }
  }, [open])
  return (
    <div class="menu" ref={box} onFocusOut={(e) => {
      if (e.relatedTarget && !box.current?.contains(e.relatedTarget as Node)) setOpen(false)
    }}>
      <button type="button" class={`button ${kind ?? 'plain'}${small ? ' small' : ''}${children ? '' : ' icon-only'}`} aria-haspopup="menu" aria-expanded={open} aria-label={children ? undefined : label} title={children ? undefined : label}
        onClick={(e) => {
          e.stopPropagation()
          setOpen(!open)
        }}>
        {icon && <Icon name={icon} />}
        {children && <span>{children}</span>}
      </button>
      {open && (
        <div class="menu-list" role="menu" aria-label={label} popover="manual">
          {items.map((item, i) => item === 'line' ? <hr key={i} /> : (
            <button key={i} type="button" role={item.checked === undefined ? 'menuitem' : 'menuitemcheckbox'} aria-checked={item.checked} disabled={item.disabled} aria-disabled={item.needs && refusalOf(item.needs) ? true : undefined} class={item.danger ? 'danger' : ''} title={(item.needs && refusalOf(item.needs)) ?? item.hint}
              onClick={(e) => {
                e.stopPropagation()
                const refusal = item.needs && refusalOf(item.needs)
                if (refusal) {
                  toast('info', refusal)
                  return
                }
                if (!item.keep) setOpen(false)
                item.run()
              }}>
              {item.checked !== undefined ? <span class="menu-check">{item.checked && <Icon name="check" size={14} />}</span> : item.icon ? <Icon name={item.icon} size={14} /> : <span class="menu-check" />}
              <span>{item.title}</span>
            </button>
          ))}
        </div>
      )}
    </div>
  )
}

/** Scrolls tabs, but not the page, so that the selected one is visible. */
function showSelected(nav: HTMLElement): void {
  const tab = nav.querySelector('.on')?.getBoundingClientRect()
  const box = nav.getBoundingClientRect()
  if (!tab) return
  if (tab.right > box.right) nav.scrollLeft += tab.right - box.right
  else if (tab.left < box.left) nav.scrollLeft -= box.left - tab.left
}

export function Tabs({ tabs, label }: { tabs: { title: ComponentChildren; href: string; on: boolean; count?: ComponentChildren }[]; label: string }) {
  const nav = useRef<HTMLElement>(null)
  const selected = tabs.find((t) => t.on)?.href
  useEffect(() => {
    const box = nav.current
    if (!box) return
    const observer = new ResizeObserver(() => showSelected(box)) // reports the first size as well
    observer.observe(box)
    return () => observer.disconnect()
  }, [selected])
  return (
    <nav class="tabs" aria-label={label} ref={nav}>
      {tabs.map((t) => (
        <a key={t.href} href={t.href} class={t.on ? 'on' : ''} aria-current={t.on ? 'page' : undefined}>
          {t.title}{t.count !== undefined && <span class="count num">{t.count}</span>}
        </a>
      ))}
    </nav>
  )
}

/** A command to copy. */
export function Command({ text }: { text: string }) {
  return (
    <div class="command">
      <code>{text}</code>
      <Copy text={text} label="Copy command" />
    </div>
  )
}
