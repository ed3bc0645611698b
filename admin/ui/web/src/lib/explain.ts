// Explains an invocation from its record, for servers without GET /invocations/{id}/explain.

import { formatRelative, parseTime } from './time.ts'
import { stepOfCompletion, type Step } from './journal.ts'

export interface Await {
  combinator?: string
  completions?: number[]
  signals?: number[]
  named_signals?: string[]
  nested?: Await[]
}

/** What a suspended invocation waits for, in words. */
export function awaitedSteps(tree: Await | undefined, steps: readonly Step[], now: number): string[] {
  if (!tree) return []
  const out: string[] = []
  for (const id of tree.completions ?? []) {
    const step = stepOfCompletion(steps, id)
    if (!step) out.push(`completion ${id}`)
    else if (step.kind === 'sleep') out.push(step.wakeAt !== undefined ? `the sleep that ends ${formatRelative(step.wakeAt, now)}` : 'a sleep')
    else if (step.kind === 'call') out.push(`the response of ${step.subject}`)
    else out.push(`${step.verb} ${step.subject}`.trim())
  }
  for (const index of tree.signals ?? []) if (index !== 1) out.push(`signal ${index} (an awakeable)`)
  for (const name of tree.named_signals ?? []) out.push(`the signal “${name}”`)
  for (const nested of tree.nested ?? []) out.push(...awaitedSteps(nested, steps, now))
  return [...new Set(out)]
}

interface Record {
  status: string
  scheduled_start_at?: string
  next_retry_at?: string
  retry_count?: number
  last_failure?: string
  no_response_since?: string
  abort_at?: string
  awaiting_on?: Await
  last_pause?: { cause: string; by?: string; reason?: string; attempts?: number; at: string }
  target_service_key?: string
  scope?: string
}

export interface Explanation {
  title: string
  text: string[]
}

/** Why an invocation does not run; undefined if it runs or has ended. */
export function explainRecord(i: Record, steps: readonly Step[], now: number): Explanation | undefined {
  const when = (text: string | undefined): string => {
    const at = parseTime(text)
    return at === undefined ? '' : formatRelative(at, now)
  }
  switch (i.status) {
    case 'scheduled':
      return { title: `Starts ${when(i.scheduled_start_at)}`, text: ['It was sent with a delay.'] }
    case 'pending':
      if (i.target_service_key === undefined) return { title: 'Waits for a slot', text: ['A flow-control rule admits no more invocations of its scope at the moment.'] }
      return i.scope
        ? { title: 'Waits for its key or a slot', text: [`Another invocation holds “${i.target_service_key}”, or a flow-control rule admits no more invocations of its scope at the moment.`] }
        : { title: 'Waits for its key', text: [`Another invocation holds “${i.target_service_key}”. Invocations of one key run one after the other.`] }
    case 'ready':
      return { title: 'Waits for an attempt', text: ['It is admitted and starts as soon as its node has a free slot.'] }
    case 'backing-off':
      return {
        title: i.next_retry_at ? `Retries ${when(i.next_retry_at)}` : 'Waits for its next attempt',
        text: [`The last attempt failed${i.retry_count ? ` (${i.retry_count} so far)` : ''}. The handler is called again with the same journal.`],
      }
    case 'suspended': {
      const waits = awaitedSteps(i.awaiting_on, steps, now)
      return {
        title: waits.length === 1 ? `Waits for ${waits[0]}` : 'Waits for a result',
        text: waits.length > 1 ? waits : ['It is suspended and uses no resources until then.'],
      }
    }
    case 'paused': {
      const cause = i.last_pause?.cause
      const by = i.last_pause?.by ? ` by ${i.last_pause.by}` : ''
      const text =
        cause === 'operator'
          ? [`It was paused${by} ${when(i.last_pause?.at)}${i.last_pause?.reason ? `: ${i.last_pause.reason}` : ''}.`]
          : cause === 'deployment-change'
            ? [`It was to continue on deployment ${i.last_pause?.reason ?? ''}, which did not succeed.`]
          : cause === 'attempts-used-up'
            ? [`All attempts of its retry policy failed${i.last_pause?.attempts ? ` (${i.last_pause.attempts})` : ''}.`]
            : ['A retry cannot fix its failure.']
      return { title: 'Paused', text: [...text, 'Resume continues it where it stopped. Resume on another deployment if the code was the cause.'] }
    }
    case 'running':
      if (i.no_response_since) return { title: 'The endpoint does not respond', text: [`The attempt was sent ${when(i.no_response_since)}${i.abort_at ? ` and is cut off ${when(i.abort_at)}` : ''}.`] }
      return undefined
  }
  return undefined
}

/** The summary of an explanation with the names of the queue instead of its id. */
export function withQueueName(summary: string, scope: string | undefined, limitKey: string | undefined): string {
  return scope ? summary.replace(/the queue vq_\w+/, () => `the queue of ${[scope, limitKey].filter(Boolean).join('/')}`) : summary
}
