// The journal as code-like lines beside a timeline. Calls unfold in place on the same scale.

import { useMemo, useRef, useState } from 'preact/hooks'
import { get } from '../api/client.ts'
import type { Invocation, JournalEvent } from '../api/types.ts'
import { formatBytes, formatCount, plural } from '../lib/format.ts'
import type { Step } from '../lib/journal.ts'
import { preview, type Payload } from '../lib/payload.ts'
import { recounts } from '../lib/recounts.ts'
import { saveFile } from '../lib/save.ts'
import { formatDuration, formatRelative, parseTime } from '../lib/time.ts'
import { bar, idleLabels, makeScale, phases, position, ticks, timeAt, zoomed, type Scale } from '../lib/timeline.ts'
import { readPayload, type Journals } from '../journals.ts'
import { useResource } from '../resource.ts'
import { href, segment } from '../router.ts'
import { Button, ErrorBox, Facts, InvocationID, Pill, Section, Skeleton, Status, Switch, Time, now, resultOf } from '../ui/basic.tsx'
import { Icon } from '../ui/icons.tsx'
import { PayloadView } from '../ui/payload.tsx'
import { VirtualList } from '../ui/virtual.tsx'

type Item =
  | { key: string; type: 'step'; owner: string; step: Step; depth: number; path: string }
  | { key: string; type: 'detail'; owner: string; step: Step; depth: number }
  | { key: string; type: 'event'; event: JournalEvent; recounted: boolean; depth: number }
  | { key: string; type: 'note'; text: string; depth: number; invocation?: Invocation | undefined; id?: string }

const maxUnfolded = 20

interface EventBody {
  ty?: string
  error_message?: string
  error_code?: number
  attempts?: number
  error_stacktrace?: string
  related_command_index?: number
  last_failure?: EventBody
  cause?: string
  reason?: string
}

function bodyOf(e: JournalEvent): EventBody {
  if (e.content) return e.content
  try {
    return JSON.parse(e.event_json ?? '{}') as EventBody
  } catch {
    return {}
  }
}

/** Calls that are unfolded: paths of their steps, with the callees. */
export type Unfolded = ReadonlyMap<string, string>

interface Props {
  inv: Invocation
  events: JournalEvent[]
  live: boolean
  /** The journals are from a file. */
  fixed: boolean
  /** Of the invocation and of the unfolded callees. */
  journals: Journals
  unfolded: Unfolded
  setUnfolded: (u: Unfolded) => void
}

export function JournalView({ inv, events, live, fixed, journals: { of, loadPayload }, unfolded, setUnfolded }: Props) {
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set())
  const [collapse, setCollapse] = useState(true)
  const [zoom, setZoom] = useState<{ from: number; to: number }>()
  const [find, setFind] = useState('')
  const ids = useMemo(() => [inv.id, ...new Set(unfolded.values())], [inv.id, unfolded])
  const callees = useResource(ids.length > 1 ? `callees:${ids.slice(1).join(',')}` : undefined, async (signal) => {
    const list = await Promise.all(ids.slice(1).map((id) => get<Invocation>(`/invocations/${segment(id)}`, signal).catch(() => undefined)))
    return new Map(list.filter((i): i is Invocation => i !== undefined).map((i) => [i.id, i]))
  }, { every: live ? 2000 : 0, keep: true, topics: live ? ids.slice(1, 8).map((id) => `invocation:${id}`) : [] })
  const journal = of(inv.id)
  const versions = ids.map((id) => {
    const { version, complete, error } = of(id)
    return `${version} ${complete} ${error?.message ?? ''}`
  }).join()
  const end = parseTime(inv.completed_at)
  const time = end ?? now.value

  const items = useMemo(() => {
    const out: Item[] = []
    const wanted = find.trim().toLowerCase()
    const add = (owner: string, depth: number, prefix: string): void => {
      const j = of(owner)
      for (const step of j.steps) {
        const path = `${prefix}/${step.index}`
        if (wanted && depth === 0 && !lineText(step).toLowerCase().includes(wanted)) continue
        out.push({ key: path, type: 'step', owner, step, depth, path })
        if (open.has(path)) out.push({ key: `${path}:detail`, type: 'detail', owner, step, depth })
        const callee = unfolded.get(path)
        if (callee) {
          const calleeInv = callees.data?.get(callee)
          out.push({ key: `${path}:head`, type: 'note', text: '', depth: depth + 1, invocation: calleeInv, id: callee })
          if (depth < 6) add(callee, depth + 1, path)
          const cj = of(callee)
          if (cj.error) out.push({ key: `${path}:error`, type: 'note', text: cj.error.message, depth: depth + 1 })
          else if (cj.complete && cj.steps.length === 0) out.push({ key: `${path}:empty`, type: 'note', text: 'No journal: it has not started, or its journal is no longer kept.', depth: depth + 1 })
          else if (!cj.complete && cj.steps.length === 0) out.push({ key: `${path}:load`, type: 'note', text: 'Loading…', depth: depth + 1 })
        }
        if (depth === 0) for (const [n, e] of events.entries()) if (e.after_journal_entry_index === step.index && noteworthy(e)) out.push({ key: eventKey(e), type: 'event', event: e, recounted: recounted.has(n), depth })
      }
      // Events whose entry is a notification, which has no line of its own.
      if (depth === 0 && !wanted) {
        const lines = new Set(j.steps.map((s) => s.index))
        for (const [n, e] of events.entries()) if (noteworthy(e) && !lines.has(e.after_journal_entry_index ?? -1)) out.push({ key: eventKey(e), type: 'event', event: e, recounted: recounted.has(n), depth })
      }
    }
    const recounted = recounts(events.map((e) => ({ type: e.event_type, attempts: bodyOf(e).attempts })))
    const dropped = droppedEvents(events)
    if (dropped > 0) out.push({ key: 'dropped', type: 'note', text: `${plural(dropped, 'older failure or event is', 'older failures and events are')} no longer kept.`, depth: 0 })
    add(inv.id, 0, '')
    return out
  }, [versions, open, unfolded, events, find, callees.data])

  const marks = useMemo(() => {
    const out = new Set<number | undefined>()
    for (const id of ids) {
      for (const s of of(id).steps) out.add(s.at).add(s.endAt)
    }
    for (const e of events) out.add(parseTime(e.appended_at))
    out.delete(undefined)
    return ([...out] as number[]).sort((a, b) => a - b)
  }, [versions, events])
  const all = [...marks, parseTime(inv.created_at), parseTime(inv.running_at), time].filter((t) => t !== undefined)
  const ends = [marks[0], marks[marks.length - 1], ...all.slice(marks.length)].filter((t) => t !== undefined)
  const whole = { from: Math.min(...ends), to: Math.max(...ends) }
  const scale = useMemo(() => {
    const inside = zoom ? [zoom.from, ...all.filter((t) => t > zoom.from && t < zoom.to), zoom.to] : all
    return makeScale(inside, { collapse })
  }, [marks, time, collapse, zoom, inv.created_at, inv.running_at])

  const keyOf = useMemo(() => (i: number) => items[i]?.key ?? String(i), [items])
  const toggle = (path: string): void => {
    const next = new Set(open)
    if (!next.delete(path)) next.add(path)
    setOpen(next)
  }
  const unfold = (path: string, callee: string): void => {
    const next = new Map(unfolded)
    if (next.delete(path)) {
      for (const p of [...next.keys()]) if (p.startsWith(`${path}/`)) next.delete(p)
    } else if (next.size < maxUnfolded) next.set(path, callee)
    setUnfolded(next)
  }
  const calls = journal.steps.filter((s) => s.childID && s.kind === 'call')
  const empty = journal.complete && journal.steps.length === 0
  const idle = scale.segments.some((s) => s.idle)
  return (
    <Section title="Journal" flush count={journal.steps.length > 0 ? `${formatCount(journal.steps.length)}${journal.complete ? '' : '+'}` : undefined} actions={
      <>
        {journal.steps.length > 12 && <input class="input small" type="search" placeholder="Find a step" aria-label="Find a step" value={find} onInput={(e) => setFind(e.currentTarget.value)} />}
        {calls.length > 0 && !fixed && (
          <button type="button" class="link" onClick={() => setUnfolded(unfolded.size > 0 ? new Map() : new Map(calls.slice(0, maxUnfolded).map((s) => [`/${s.index}`, s.childID!])))}>{unfolded.size > 0 ? 'Fold calls' : 'Unfold calls'}</button>
        )}
        {journal.steps.length > 0 && (
          <span class="zoom" role="group" aria-label="Zoom">
            {zoom && <Button small kind="ghost" icon="left" label="Earlier" onClick={() => setZoom(zoomed(scale, whole, -0.5, 1))} />}
            {zoom && <Button small kind="ghost" icon="right" label="Later" onClick={() => setZoom(zoomed(scale, whole, 0.5, 1))} />}
            <Button small kind="ghost" icon="minus" label="Zoom out" disabled={!zoom} onClick={() => setZoom(zoomed(scale, whole, 0, 2))} />
            <Button small kind="ghost" icon="plus" label="Zoom in" onClick={() => setZoom(zoomed(scale, whole, 0, 0.5))} />
            {zoom && <button type="button" class="link" onClick={() => setZoom(undefined)}>Whole time</button>}
          </span>
        )}
        {(idle || !collapse) && <Switch checked={collapse} onChange={setCollapse}>Collapse idle time</Switch>}
      </>
    }>
      {journal.error && journal.steps.length === 0 && <ErrorBox what="The journal could not be read" error={journal.error} />}
      {!journal.complete && !journal.error && journal.steps.length === 0 && <Skeleton rows={6} />}
      {empty && <p class="journal-empty">{inv.status === 'completed' ? 'The journal is no longer kept: its retention is over.' : 'No entries yet: no attempt has started.'}</p>}
      {journal.steps.length > 0 && (
        <div class="journal">
          <Axis scale={scale} inv={inv} time={time} live={live} zoom={setZoom} />
          <VirtualList count={items.length} keyOf={keyOf} estimate={30} render={(n) => {
            const item = items[n]
            if (!item) return null
            switch (item.type) {
              case 'step':
                return (
                  <StepLine ended={item.depth === 0 && inv.status === 'completed'} item={item} scale={scale} time={time} live={live} open={open.has(item.path)} unfolded={unfolded.has(item.path)} failedIndex={inv.last_failure ? failing(events) : undefined} toggle={() => toggle(item.path)}
                    unfold={item.step.childID && !fixed ? () => unfold(item.path, item.step.childID!) : undefined} />
                )
              case 'detail':
                return <Detail item={item} load={fixed ? undefined : (index) => loadPayload(item.owner, index)} />
              case 'event':
                return <EventLine event={item.event} recounted={item.recounted} scale={scale} />
              case 'note':
                return (
                  <div class="j-note" style={{ paddingLeft: `${52 + item.depth * 20}px` }}>
                    {item.invocation ? <><Status status={item.invocation.status} result={resultOf(item.invocation)} /><InvocationID id={item.invocation.id} /></> : item.id ? <InvocationID id={item.id} /> : <span class="muted">{item.text}</span>}
                  </div>
                )
            }
          }} />
          {find.trim() !== '' && items.length === 0 && <p class="journal-empty">No step matches “{find.trim()}”.</p>}
        </div>
      )}
    </Section>
  )
}

const noteworthy = (e: JournalEvent): boolean => e.event_type !== 'Suspended'

/** Identifies an event: several of a type are kept, and of those that are not kept there is one of each type. */
const eventKey = (e: JournalEvent): string => `event:${e.event_type}:${e.sequence ?? ''}`

/** The command that the last failure concerns. */
function failing(events: JournalEvent[]): number | undefined {
  for (const e of [...events].reverse()) {
    if (e.event_type === 'TransientError') return bodyOf(e).related_command_index
    if (e.event_type === 'Paused') return bodyOf(e).last_failure?.related_command_index
  }
  return undefined
}

/** How many older events of the history were dropped. */
const droppedEvents = (events: JournalEvent[]): number => events[0]?.sequence ?? 0

function lineText(s: Step): string {
  return `${s.verb} ${s.subject} ${s.failure?.message ?? ''} ${preview(s.input, 60)} ${preview(s.output, 60)}`
}

function Axis({ scale, inv, time, live, zoom }: { scale: Scale; inv: Invocation; time: number; live: boolean; zoom: (z: { from: number; to: number }) => void }) {
  const lane = useRef<HTMLDivElement>(null)
  const [drag, setDrag] = useState<{ a: number; b: number }>()
  const at = (e: PointerEvent): number => {
    const box = lane.current!.getBoundingClientRect()
    return Math.min(1, Math.max(0, (e.clientX - box.left) / box.width))
  }
  const life = phases({ created: parseTime(inv.created_at) ?? scale.from, scheduledStart: parseTime(inv.scheduled_start_at), running: parseTime(inv.running_at), completed: parseTime(inv.completed_at) }, time)
  return (
    <div class="j-axis">
      <span class="j-axis-label muted">Step</span>
      <div class="j-lane" ref={lane} title="Drag to zoom"
        onPointerDown={(e) => {
          lane.current!.setPointerCapture(e.pointerId)
          setDrag({ a: at(e), b: at(e) })
        }}
        onPointerMove={(e) => drag && setDrag({ ...drag, b: at(e) })}
        onPointerUp={() => {
          if (drag && Math.abs(drag.a - drag.b) > 0.02) zoom({ from: timeAt(scale, Math.min(drag.a, drag.b)), to: timeAt(scale, Math.max(drag.a, drag.b)) })
          setDrag(undefined)
        }}>
        {life.map((p) => {
          const b = bar(scale, p.from, p.to)
          return b.width > 0 && <i key={p.kind} class={`life ${p.kind}`} style={{ left: `${b.x * 100}%`, width: `${b.width * 100}%` }} title={`${p.kind} ${formatDuration(p.to - p.from)}`} />
        })}
        {idleLabels(scale).map((s) => <span key={s.a} class={`idle-label${s.b > 0.94 ? ' at-end' : ''}`} style={s.b > 0.94 ? {} : { left: `${((s.a + s.b) / 2) * 100}%` }} title={`nothing happened for ${formatDuration(s.duration)}`}>+{formatDuration(s.duration)}</span>)}
        {ticks(scale).filter((t) => t.x < 0.93 && !scale.segments.some((s) => s.idle && s.b > 0.94 && t.x > Math.min(s.a - 0.1, 0.76))).map((t) => <span key={t.x} class="tick num" style={{ left: `${t.x * 100}%` }}>{t.offset === 0 ? '0' : formatDuration(t.offset)}</span>)}
        {live && <span class="now-mark" style={{ left: `${position(scale, time) * 100}%` }} title="now" />}
        {drag && <span class="zoom-mark" style={{ left: `${Math.min(drag.a, drag.b) * 100}%`, width: `${Math.abs(drag.a - drag.b) * 100}%` }} />}
      </div>
    </div>
  )
}

function StepLine({ item, scale, time, live, ended, open, unfolded, failedIndex, toggle, unfold }: {
  item: Extract<Item, { type: 'step' }>
  scale: Scale
  time: number
  live: boolean
  /** Its invocation has ended, so an open step does not complete. */
  ended: boolean
  open: boolean
  unfolded: boolean
  failedIndex: number | undefined
  toggle: () => void
  unfold: (() => void) | undefined
}) {
  const s = item.step
  const failed = s.state === 'failed' || (item.depth === 0 && failedIndex === s.index && live)
  const from = s.at
  const to = s.endAt ?? (s.state === 'open' ? time : s.at)
  const b = from !== undefined && to !== undefined ? bar(scale, from, Math.max(to, from)) : undefined
  const duration = from !== undefined && s.endAt !== undefined && s.endAt > from ? formatDuration(s.endAt - from) : s.state === 'open' && live && from !== undefined ? formatDuration(time - from) : ''
  const outside = from !== undefined && (from > scale.to || (to ?? from) < scale.from)
  return (
    <div class={`j-row k-${s.kind} s-${s.state}${failed ? ' failed' : ''}${open ? ' open' : ''}`}>
      <span class="j-index num">{s.index}</span>
      <div class="j-code" style={{ paddingLeft: `${item.depth * 20}px` }}>
        {unfold
          ? <button type="button" class="j-fold" aria-expanded={unfolded} aria-label={unfolded ? 'Fold the call' : 'Unfold the call'} onClick={unfold}><Icon name={unfolded ? 'down' : 'right'} size={12} /></button>
          : <span class="j-fold" />}
        <button type="button" class="j-line" aria-expanded={open} onClick={toggle}><Code step={s} time={time} ended={ended} /></button>
      </div>
      <span class="j-dur num">{duration}</span>
      <div class="j-lane" aria-hidden="true">
        {scale.segments.filter((g) => g.idle).map((g) => <i key={g.a} class="idle" style={{ left: `${g.a * 100}%`, width: `${(g.b - g.a) * 100}%` }} />)}
        {b && !outside && (s.state === 'instant' || (b.width < 0.001 && s.state !== 'open')
          ? <i class="dot" style={{ left: `${b.x * 100}%` }} />
          : <i class={`bar${s.state === 'open' ? ' going' : ''}`} style={{ left: `${b.x * 100}%`, width: `${b.width * 100}%` }} />)}
      </div>
    </div>
  )
}

/** A step as a line of code. */
function Code({ step: s, time, ended }: { step: Step; time: number; ended: boolean }) {
  const pending = (text: string) => s.state === 'open' && (ended ? <span class="c-faint">not completed</span> : <span class="c-wait">{text}</span>)
  const input = preview(s.input, 60)
  const value = s.failure
    ? <span class="c-fail" dir="auto">{s.failure.code ? `[${s.failure.code}] ` : ''}{s.failure.message}</span>
    : s.output ? <span class="c-val" dir="auto">{preview(s.output, 90) || 'void'}</span>
      : s.keys ? <span class="c-val">{s.keys.join(', ')}</span>
        : s.void ? <span class="c-faint">{s.kind === 'get' ? 'nothing' : 'void'}</span> : null
  const arrow = value && <span class="c-arrow">→</span>
  switch (s.kind) {
    case 'input':
      return <><span class="c-verb">input</span>{input ? <span class="c-arg" dir="auto">{input}</span> : <span class="c-faint">empty</span>}</>
    case 'output':
      return <><span class="c-verb">{s.verb}</span>{value ?? <span class="c-faint">void</span>}</>
    case 'call':
    case 'send':
      return <><span class="c-verb">{s.verb}</span><span class="c-call"><span class="c-name"><bdi>{s.subject}</bdi></span><span class="c-paren">(</span><span class="c-arg" dir="auto">{input}</span><span class="c-paren">)</span></span>{s.wakeAt ? <span class="c-faint">at {formatRelative(s.wakeAt, time)}</span> : null}{arrow}{value}{pending('waiting')}</>
    case 'sleep': {
      const planned = s.wakeAt !== undefined && s.at !== undefined ? formatDuration(s.wakeAt - s.at) : ''
      return <><span class="c-verb">sleep</span><span class="c-arg">{planned}</span>{s.wakeAt !== undefined && pending(`wakes ${formatRelative(s.wakeAt, time)}`)}</>
    }
    case 'set':
      return <><span class="c-verb">set</span><span class="c-name"><bdi>{s.subject}</bdi></span><span class="c-arrow">=</span><span class="c-arg" dir="auto">{input}</span></>
    case 'run':
      return <><span class="c-verb">run</span><span class="c-name"><bdi>{s.subject || 'unnamed'}</bdi></span>{arrow}{value}{pending('no result yet')}</>
    default:
      return <><span class="c-verb">{s.verb}</span>{s.subject && <span class="c-name"><bdi>{s.subject}</bdi></span>}{input && <><span class="c-arrow">=</span><span class="c-arg" dir="auto">{input}</span></>}{arrow}{value}{pending('waiting')}</>
  }
}

function Detail({ item, load }: { item: Extract<Item, { type: 'detail' }>; load: ((index: number) => Promise<void>) | undefined }) {
  const s = item.step
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState('')
  const during = (work: () => Promise<void>): void => {
    setBusy(true)
    setProblem('')
    work().catch((err: Error) => setProblem(err.message)).finally(() => setBusy(false))
  }
  /** How the payload of an entry is shown and saved; a bundle has only what is in it. */
  const viewing = (payload: Payload, index: number | undefined) => ({
    payload, busy,
    load: load && index !== undefined ? () => during(() => load(index)) : undefined,
    save: payload.bytes || (load && index !== undefined)
      ? () => during(async () => saveFile(`${item.owner}-${index ?? s.index}`, 'application/octet-stream', payload.bytes ?? await readPayload(item.owner, index!)))
      : undefined,
  })
  return (
    <div class="j-detail" style={{ marginLeft: `${44 + item.depth * 20}px` }}>
      <Facts rows={[
        ['Entry', <span class="num">{s.index}{s.endIndex !== undefined ? `, result ${s.endIndex}` : ''}</span>],
        s.at !== undefined ? ['Started', <Time at={s.at} absolute />] : null,
        s.endAt !== undefined && s.endAt !== s.at ? ['Ended', <Time at={s.endAt} absolute />] : null,
        s.wakeAt !== undefined ? ['Due', <Time at={s.wakeAt} absolute />] : null,
        s.childID ? ['Invocation', <InvocationID id={s.childID} />] : null,
        s.idempotencyKey ? ['Idempotency key', <span class="mono">{s.idempotencyKey}</span>] : null,
        ['Size', formatBytes(s.rawLength)],
        s.keys ? ['Keys', <span class="wrap">{s.keys.map((k) => <Pill key={k}><bdi>{k}</bdi></Pill>)}</span>] : null,
      ]} />
      {s.failure && <p class="failure-message" dir="auto">{s.failure.code ? `[${s.failure.code}] ` : ''}{s.failure.message}</p>}
      {s.headers && s.headers.length > 0 && (
        <details><summary>{plural(s.headers.length, 'header')}</summary><dl class="headers">{s.headers.map((h) => <div key={h.name}><dt>{h.name}</dt><dd>{h.value}</dd></div>)}</dl></details>
      )}
      {s.input && <PayloadView title={s.kind === 'set' ? 'Value' : 'Input'} {...viewing(s.input, s.index)} />}
      {s.output && <PayloadView title="Result" {...viewing(s.output, s.endIndex ?? s.index)} />}
      {problem && <p class="notice" role="alert">{problem}</p>}
    </div>
  )
}

function EventLine({ event, recounted, scale }: { event: JournalEvent; recounted: boolean; scale: Scale }) {
  const at = parseTime(event.appended_at)
  const body = bodyOf(event)
  const failure = body.last_failure ?? body
  const moved = event.event_type === 'Resumed' && body.cause === 'deployment-change'
  const [title, tone] = moved ? [`continued on deployment ${body.reason ?? ''}`, 'ok'] : { TransientError: [body.attempts ? `attempt ${body.attempts} failed` : 'attempt failed', 'bad'], Paused: ['paused', 'warn'], Resumed: ['resumed', 'ok'], CancelRequested: ['cancellation requested', 'warn'] }[event.event_type] ?? [event.event_type, 'idle']
  return (
    <div class={`j-row j-event ${tone}`}>
      <span class="j-index" />
      <div class="j-code"><span class="j-fold" /><span class="j-line"><span class="c-verb">{title}</span>{recounted && <span class="muted">counted from 1 again: it was suspended or cancelled in between</span>}{failure.error_message && <span class={tone === 'bad' ? 'c-fail' : 'c-arg'} dir="auto">{failure.error_code ? `[${failure.error_code}] ` : ''}{failure.error_message.split('\n')[0]}</span>}</span></div>
      <span class="j-dur"><Time at={event.appended_at} /></span>
      <div class="j-lane" aria-hidden="true">{at !== undefined && <i class="cross" style={{ left: `${position(scale, at) * 100}%` }} />}</div>
    </div>
  )
}

export { href }
