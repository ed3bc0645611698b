// A journal as a list of steps: each command with what came back for it.

import type { Payload } from './payload.ts'

type Body = Record<string, unknown>

/** An entry of a journal. Bundles of older servers have its content as text in json. */
export interface JournalRow {
  index: number
  entry_type: string
  name?: string
  invoked_id?: string
  invoked_target?: string
  sleep_wakeup_at?: string
  promise_name?: string
  raw_length?: number
  content?: Body
  json?: string
  appended_at?: string
}

export interface Failure {
  code?: number
  message: string
}

export type StepKind =
  | 'input' | 'output' | 'run' | 'call' | 'send' | 'sleep' | 'get' | 'set' | 'clear' | 'clear-all' | 'keys'
  | 'promise' | 'promise-complete' | 'signal' | 'signal-send' | 'awakeable' | 'attach' | 'poll' | 'other'

export interface Step {
  index: number
  kind: StepKind
  /** What the handler called: run, Counter/ada.add, sleep. */
  verb: string
  /** The name or key that the verb is about. */
  subject: string
  at?: number
  endAt?: number
  /** Index of the notification that ended the step. */
  endIndex?: number
  state: 'done' | 'failed' | 'open' | 'instant'
  input?: Payload
  output?: Payload
  /** The result is known to be empty. */
  void?: boolean
  failure?: Failure
  childID?: string
  wakeAt?: number
  headers?: { name: string; value: string }[]
  keys?: string[]
  idempotencyKey?: string
  rawLength: number
  completions: number[]
}

/** Payloads of entries up to this size are never left out. */
export const alwaysInline = 256

const bytesOf = (v: unknown, length: number): Payload | undefined => {
  if (!Array.isArray(v)) return undefined
  if (v.length === 0) return length > alwaysInline ? { length } : { bytes: new Uint8Array(), length: 0 }
  return { bytes: Uint8Array.from(v as number[]), length: v.length }
}

/** Reads {"Success": bytes}, {"Failure": …} or "Void". `left` is the size of a payload that was left out. */
function resultOf(v: unknown, left: number): Pick<Step, 'output' | 'failure' | 'void'> {
  if (v === 'Void') return { void: true }
  if (v && typeof v === 'object') {
    const r = v as Body
    if ('Success' in r) {
      const output = bytesOf(r.Success, left)
      return output ? { output } : {}
    }
    if (r.Failure && typeof r.Failure === 'object') {
      const f = r.Failure as Body
      return { failure: { ...(typeof f.code === 'number' ? { code: f.code } : {}), message: String(f.message ?? '') } }
    }
  }
  return {}
}

const ms = (text: string | undefined): number | undefined => {
  if (!text) return undefined
  const t = Date.parse(text)
  return Number.isNaN(t) ? undefined : t
}

function targetOf(request: Body | undefined): string {
  const target = request?.invocation_target as Body | undefined
  if (!target) return ''
  const t = Object.values(target)[0] as Body
  const key = typeof t.key === 'string' ? `/${t.key}` : ''
  return `${String(t.name)}${key}/${String(t.handler)}`
}

const verbs: Record<string, [StepKind, string]> = {
  Input: ['input', 'input'], Output: ['output', 'return'], Run: ['run', 'run'], Call: ['call', 'call'], OneWayCall: ['send', 'send'],
  Sleep: ['sleep', 'sleep'], GetLazyState: ['get', 'get'], GetEagerState: ['get', 'get'], SetState: ['set', 'set'], ClearState: ['clear', 'clear'],
  ClearAllState: ['clear-all', 'clear all'], GetLazyStateKeys: ['keys', 'state keys'], GetEagerStateKeys: ['keys', 'state keys'],
  GetPromise: ['promise', 'await promise'], PeekPromise: ['promise', 'peek promise'], CompletePromise: ['promise-complete', 'complete promise'],
  SendSignal: ['signal-send', 'signal'], CompleteAwakeable: ['awakeable', 'complete awakeable'], AttachInvocation: ['attach', 'attach'],
  GetInvocationOutput: ['poll', 'output of'],
}

/** Commands that complete immediately, without a notification. */
const instant = new Set<StepKind>(['input', 'output', 'set', 'clear', 'clear-all', 'send', 'signal-send', 'awakeable'])

/** Joins commands and notifications to steps, as rows are read. Steps are updated in place. */
export class StepBuilder {
  readonly steps: Step[] = []
  /** Index of the first entry that has not been read. */
  next = 0
  readonly #byCompletion = new Map<number, Step>()

  /** Adds rows, in order of their index. */
  add(rows: readonly JournalRow[]): void {
    for (const row of rows) {
      const step = this.#stepOf(row)
      if (step) this.steps.push(step)
      for (const id of step?.completions ?? []) this.#byCompletion.set(id, step!)
      this.next = row.index + 1
    }
  }

  /** Adds the payload of an entry that was added without it. */
  addPayload(index: number, bytes: Uint8Array): void {
    const payload = { bytes, length: bytes.length }
    const step = this.steps.find((s) => s.index === index || s.endIndex === index)
    if (!step) return
    if (step.index === index && step.input) step.input = payload
    else step.output = payload
  }

  /** The step that begins with a row; undefined for the result of an earlier step. */
  #stepOf(row: JournalRow): Step | undefined {
    const entry = row.content ?? parse(row.json)
    const [group, type = ''] = row.entry_type.split(': ')
    if (group === 'Notification') return notified(row, type, entry, this.#byCompletion)
    return command(row, type, (entry?.Command as Body | undefined)?.[type] as Body | undefined)
  }
}

/** The entries whose payloads were left out because of their size. */
export function absentPayloads(rows: readonly JournalRow[]): { index: number; length: number }[] {
  return buildSteps(rows).flatMap((s) => [
    ...(s.input && !s.input.bytes ? [{ index: s.index, length: s.input.length }] : []),
    ...(s.output && !s.output.bytes ? [{ index: s.endIndex ?? s.index, length: s.output.length }] : []),
  ])
}

/** Joins the rows of a whole journal. */
export function buildSteps(rows: readonly JournalRow[]): Step[] {
  const builder = new StepBuilder()
  builder.add(rows)
  return builder.steps
}

function parse(json: string | undefined): Body | undefined {
  if (!json) return undefined
  try {
    return JSON.parse(json) as Body
  } catch {
    return undefined
  }
}

function command(row: JournalRow, type: string, body: Body | undefined): Step {
  const [kind, verb] = verbs[type] ?? ['other', type || row.entry_type]
  const at = ms(row.appended_at)
  const length = row.raw_length ?? 0
  const request = body?.request as Body | undefined
  const completions = [body?.completion_id, body?.result_completion_id, body?.invocation_id_completion_id].filter((n): n is number => typeof n === 'number')
  const step: Step = {
    index: row.index, kind, verb, subject: row.name ?? '', state: 'open', rawLength: length, completions,
    ...(at !== undefined ? { at } : {}),
  }
  if (instant.has(kind) || type === 'GetEagerState' || type === 'GetEagerStateKeys') {
    step.state = 'instant'
    if (at !== undefined) step.endAt = at
  }
  if (row.invoked_id) step.childID = row.invoked_id
  switch (kind) {
    case 'input': {
      const input = bytesOf(body?.payload, length)
      if (input) step.input = input
      if (Array.isArray(body?.headers)) step.headers = body.headers as { name: string; value: string }[]
      break
    }
    case 'output': {
      Object.assign(step, resultOf(body?.result, length))
      if (step.failure) {
        step.state = 'failed'
        step.verb = 'fail'
      }
      break
    }
    case 'call':
    case 'send': {
      step.subject = row.invoked_target ?? targetOf(request)
      const input = bytesOf(request?.parameter, length)
      if (input) step.input = input
      if (typeof request?.idempotency_key === 'string' && request.idempotency_key !== '') step.idempotencyKey = request.idempotency_key
      if (!step.childID && typeof request?.invocation_id === 'string') step.childID = request.invocation_id
      if (typeof body?.invoke_time === 'number' && body.invoke_time > 0) step.wakeAt = body.invoke_time
      break
    }
    case 'sleep': {
      const wake = ms(row.sleep_wakeup_at) ?? (typeof body?.wake_up_time === 'number' ? body.wake_up_time : undefined)
      if (wake !== undefined) step.wakeAt = wake
      break
    }
    case 'get':
    case 'clear':
      step.subject = String(body?.key ?? row.name ?? '')
      if (type === 'GetEagerState') Object.assign(step, resultOf(body?.result, length))
      break
    case 'set': {
      step.subject = String(body?.key ?? row.name ?? '')
      const input = bytesOf(body?.value, length)
      if (input) step.input = input
      break
    }
    case 'keys':
      if (Array.isArray(body?.state_keys)) step.keys = body.state_keys as string[]
      break
    case 'promise':
      step.subject = String(body?.key ?? row.promise_name ?? row.name ?? '')
      break
    case 'promise-complete': {
      step.subject = String(body?.key ?? row.promise_name ?? row.name ?? '')
      const given = resultOf(body?.value, length)
      if (given.output) step.input = given.output
      break
    }
    case 'signal-send': {
      const id = body?.signal_id as Body | undefined
      step.subject = `${String(id?.Name ?? id?.Index ?? '')} → ${String(body?.target_invocation_id ?? '')}`
      const given = resultOf(body?.result, length)
      if (given.output) step.input = given.output
      break
    }
    case 'awakeable': {
      step.subject = String(body?.id ?? '')
      const given = resultOf(body?.result, length)
      if (given.output) step.input = given.output
      if (given.failure) step.failure = given.failure
      break
    }
    case 'attach':
    case 'poll': {
      const target = body?.target as Body | undefined
      const value = target && Object.values(target)[0]
      step.subject = typeof value === 'string' ? value : value ? Object.values(value as Body).filter(Boolean).join('/') : ''
      break
    }
  }
  return step
}

/** Applies a notification to its command; signals are steps of their own. */
function notified(row: JournalRow, type: string, entry: Body | undefined, waiting: Map<number, Step>): Step | undefined {
  const at = ms(row.appended_at)
  const n = entry?.Notification as Body | undefined
  const completion = n?.Completion as Body | undefined
  const length = row.raw_length ?? 0
  if (completion) {
    const body = Object.values(completion)[0] as Body
    const step = typeof body?.completion_id === 'number' ? waiting.get(body.completion_id) : undefined
    if (step) {
      if (typeof body.invocation_id === 'string') {
        step.childID = body.invocation_id
        return undefined // the result is still to come
      }
      const result = resultOf(body.result, length)
      Object.assign(step, result)
      if (Array.isArray(body.state_keys)) step.keys = body.state_keys as string[]
      if (at !== undefined) step.endAt = at
      step.endIndex = row.index
      step.state = result.failure ? 'failed' : 'done'
      return undefined
    }
  }
  const signal = n?.Signal as Body | undefined
  const id = signal?.id as Body | undefined
  const result = resultOf(signal?.result, length)
  const cancel = id?.Index === 1
  return {
    index: row.index, kind: signal ? 'signal' : 'other', verb: cancel ? 'cancellation requested' : signal ? 'signal received' : type,
    subject: cancel ? '' : id?.Name !== undefined ? String(id.Name) : id?.Index !== undefined ? `#${String(id.Index)}` : row.name ?? '',
    state: 'instant', rawLength: length, completions: [], ...result,
    ...(at !== undefined ? { at, endAt: at } : {}),
  }
}

/** Names of the completions that an await tree lists, from the steps that own them. */
export function stepOfCompletion(steps: readonly Step[], completion: number): Step | undefined {
  return steps.find((s) => s.completions.includes(completion))
}
