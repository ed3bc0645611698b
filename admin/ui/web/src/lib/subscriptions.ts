// What the forms of event subscriptions send, and why records block.

import type { Subscription } from '../api/types.ts'

/** The fields of a subscription as a form has them. */
export interface SubscriptionForm {
  cluster: string
  topics: string
  pattern: string
  service: string
  handler: string
  start: string
  startTime: string
  otherwise: string
  ordering: string
  onError: string
  deadLetterTopic: string
  tombstones: string
  onRecreate: string
  headers: string
  scope: string
  limitKey: string
  maxInFlight: string
  options: Property[]
}

/** A property of a Kafka client. */
export interface Property {
  name: string
  value: string
}

export const propertiesOf = (values: Record<string, string>): Property[] => Object.keys(values).sort().map((name) => ({ name, value: values[name]! }))

/** Properties in the form of the API; rows without a name are omitted. */
export const propertyMap = (list: readonly Property[]): Record<string, string> => Object.fromEntries(list.filter((p) => p.name.trim() !== '').map((p) => [p.name.trim(), p.value]))

const words = (text: string): string[] => text.split(/[\s,]+/).filter((w) => w !== '')

export function formOf(s: Subscription | undefined, cluster = ''): SubscriptionForm {
  const [, service = '', handler = ''] = /^service:\/\/([^/]*)\/(.*)$/.exec(s?.sink ?? '') ?? []
  // The server adds these two when they are not set; to send them back would fix them.
  const options = { ...s?.options }
  if (options['group.id'] === s?.id) delete options['group.id']
  if (options['client.id'] === 'platform') delete options['client.id']
  return {
    cluster, topics: '', pattern: '', service, handler, start: '', startTime: '', otherwise: 'latest', ordering: s?.ordering ?? 'key', onError: s?.on_error ?? 'block', deadLetterTopic: s?.dead_letter_topic ?? '',
    tombstones: s?.tombstones ?? 'deliver', onRecreate: s?.on_recreate ?? 'error', headers: (s?.headers ?? ['*']).join(', '), scope: s?.scope ?? '', limitKey: s?.limit_key ?? '', maxInFlight: String(s?.max_in_flight ?? 1000), options: propertiesOf(options),
  }
}

/** The settings that can be edited, in the form of the API. */
function settings(f: SubscriptionForm): Record<string, unknown> {
  return {
    sink: `service://${f.service}/${f.handler}`, ordering: f.ordering, on_error: f.onError, dead_letter_topic: f.onError === 'dead-letter' ? f.deadLetterTopic.trim() : '', tombstones: f.tombstones, on_recreate: f.onRecreate,
    headers: words(f.headers), scope: f.scope.trim(), limit_key: f.limitKey.trim(), max_in_flight: Number(f.maxInFlight), options: propertyMap(f.options),
  }
}

/** The body that creates a subscription. */
export function creation(f: SubscriptionForm): Record<string, unknown> {
  const body = settings(f)
  body.source = `kafka://${f.cluster}`
  if (f.pattern.trim() !== '') body.topic_pattern = f.pattern.trim()
  else body.topics = words(f.topics)
  if (body.dead_letter_topic === '') delete body.dead_letter_topic
  const start = startOf(f)
  if (start !== undefined) body.start = start
  return body
}

function startOf(f: SubscriptionForm): unknown {
  switch (f.start) {
    case '':
      return undefined
    case 'timestamp': {
      const at = new Date(f.startTime)
      return { timestamp: Number.isNaN(at.getTime()) ? f.startTime : at.toISOString() }
    }
    case 'group':
      return { from: 'group', otherwise: f.otherwise }
  }
  return f.start
}

/** The body that changes a subscription: what differs. */
export function changes(before: SubscriptionForm, after: SubscriptionForm): Record<string, unknown> {
  const was = settings(before)
  return Object.fromEntries(Object.entries(settings(after)).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(was[name])))
}

/** Whether a change sends records elsewhere, which concerns those that are not handed over yet. */
export const reroutes = (body: Record<string, unknown>): boolean => ['sink', 'ordering', 'scope', 'limit_key'].some((name) => name in body)

/** Why a record blocks its topic partition, and what can be done, in plain words. */
export const blockReasons: Readonly<Record<string, readonly [why: string, remedy: string]>> = {
  key_missing: ['The handler belongs to an object or a workflow, so each record needs a key, and this one has none.', 'Skip it, or produce it again with a key.'],
  key_not_utf8: ['The key becomes the key of an object or a workflow, which is text, but it is not valid UTF-8.', 'Skip it, or produce it again with a key that is text.'],
  key_too_large: ['The key exceeds the maximum length of keys of invocations.', 'Skip it, or produce it again with a shorter key.'],
  record_too_large: ['The record is larger than networking.message-size-limit.', 'Increase the limit and retry, or skip the record.'],
  handler_not_found: ['The service or its handler is not registered.', 'Register a deployment that has it, or edit the subscription, then retry.'],
  invalid_scope: ['The scope that the template makes from this record is not valid.', 'Edit the template of the scope and retry, or skip the record.'],
  invalid_limit_key: ['The limit key that the template makes from this record is not valid.', 'Edit the template of the limit key and retry, or skip the record.'],
  decode_failed: ['The data of the record is compressed or encoded and damaged.', 'Skip it. If it happens again, check the producer.'],
}
