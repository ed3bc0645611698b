// Forms that create and edit event subscriptions and Kafka clusters. The server validates: its
// error is shown at the field that it names.

import { useState } from 'preact/hooks'
import { APIError, get, request, withQuery } from '../api/client.ts'
import type { KafkaCluster, Service, Subscription } from '../api/types.ts'
import { changes, creation, formOf, propertiesOf, propertyMap, reroutes, type Property, type SubscriptionForm } from '../lib/subscriptions.ts'
import { refreshAll } from '../live.ts'
import { useResource } from '../resource.ts'
import { href, navigate, segment } from '../router.ts'
import { Button, ErrorCodeHint, Field, Switch } from '../ui/basic.tsx'
import { FormButtons, useSubmission } from '../ui/form.tsx'
import { DialogFrame, openDialog, toast } from '../ui/overlay.tsx'

/** The error of one field, if the server has named it. */
const fieldOf = (error: Error | undefined): string | undefined => (error instanceof APIError ? error.field : undefined)

export function createSubscription(cluster?: string): void {
  void openDialog('Create a subscription', (close) => <SubscriptionDialog close={close} of={undefined} cluster={cluster} />, true)
}

export function editSubscription(s: Subscription): void {
  void openDialog('Edit the subscription', (close) => <SubscriptionDialog close={close} of={s} cluster={undefined} />, true)
}

const knownFields = ['source', 'sink', 'start', 'ordering', 'on_error', 'dead_letter_topic', 'tombstones', 'on_recreate', 'headers', 'scope', 'limit_key', 'max_in_flight']

function SubscriptionDialog({ of: s, cluster, close }: { of: Subscription | undefined; cluster: string | undefined; close: () => void }) {
  const services = useResource('services', (signal) => get<{ services: Service[] }>('/services', signal), { every: 0 })
  const clusters = useResource('kafka-clusters', (signal) => get<{ clusters: KafkaCluster[] }>('/kafka-clusters', signal), { every: 0 })
  const [before] = useState(() => formOf(s, cluster))
  const [f, setForm] = useState(before)
  const [check, setCheck] = useState(false)
  const set = (part: Partial<SubscriptionForm>): void => setForm((old) => ({ ...old, ...part }))
  const form = useSubmission(close, async () => {
    if (s) {
      await request(`/subscriptions/${segment(s.id)}`, { method: 'PATCH', body: changes(before, f) })
      toast('ok', 'The subscription was changed')
    } else {
      const created = await request<Subscription>(withQuery('/subscriptions', { check: check || undefined }), { method: 'POST', body: creation({ ...f, cluster: f.cluster || clusters.data?.clusters[0]?.name || '' }), timeout: 60_000 })
      toast('ok', 'The subscription was created')
      navigate(href(`/subscriptions/${segment(created.id)}`))
    }
    refreshAll()
  })
  const wrong = fieldOf(form.error)
  const at = (name: string): string | undefined => (wrong === name ? form.error?.message : undefined)
  const nothing = s !== undefined && Object.keys(changes(before, f)).length === 0
  return (
    <form onSubmit={form.submit}>
      <DialogFrame title={s ? 'Edit the subscription' : 'Create a subscription'} close={close} actions={<FormButtons close={close} action={s ? 'Save' : 'Create'} busy={form.busy} disabled={nothing || f.service === '' || f.handler === ''} />}>
        {!s && <Source f={f} set={set} clusters={clusters.data?.clusters ?? []} error={at('source')} />}
        <Sink f={f} set={set} services={services.data?.services ?? []} error={at('sink')} />
        {!s && <Start f={f} set={set} error={at('start')} />}
        <Delivery f={f} set={set} at={at} />
        {s && !s.paused && reroutes(changes(before, f)) && <p class="notice">This concerns records that are not handed over yet. Those that were are not delivered again.</p>}
        <details class="more-options" open={s !== undefined || (wrong !== undefined && !['source', 'sink', 'start', 'on_error', 'dead_letter_topic', 'ordering'].includes(wrong))}>
          <summary>More settings</summary>
          <MoreSettings f={f} set={set} at={at} />
          <Properties list={f.options} set={(options) => set({ options })} title="Properties of the Kafka client" hint="They override those of the Kafka cluster." error={form.error} />
        </details>
        {!s && <Switch checked={check} onChange={setCheck}>Create it only if the brokers can be reached now</Switch>}
        <FormError error={form.error} shown={wrong !== undefined && (knownFields.includes(wrong) || f.options.some((p) => p.name.trim() === wrong))} />
      </DialogFrame>
    </form>
  )
}

interface PartProps {
  f: SubscriptionForm
  set: (part: Partial<SubscriptionForm>) => void
}

function Source({ f, set, clusters, error }: PartProps & { clusters: KafkaCluster[]; error: string | undefined }) {
  const [byPattern, setByPattern] = useState(false)
  return (
    <>
      <div class="form-grid">
        <Field label="Kafka cluster">
          <select class="input" value={f.cluster || clusters[0]?.name} onChange={(e) => set({ cluster: e.currentTarget.value })}>
            {clusters.map((c) => <option key={c.name} value={c.name}>{c.name}</option>)}
          </select>
        </Field>
        <Field label="Topics are chosen by">
          <select class="input" value={byPattern ? 'pattern' : 'names'} onChange={(e) => {
            setByPattern(e.currentTarget.value === 'pattern')
            set({ topics: '', pattern: '' })
          }}><option value="names">their names</option><option value="pattern">a regular expression</option></select>
        </Field>
      </div>
      {byPattern
        ? <Field label="Pattern" hint="It matches whole names, also of topics that are created later." error={error}><input class="input mono" value={f.pattern} autofocus spellcheck={false} onInput={(e) => set({ pattern: e.currentTarget.value })} /></Field>
        : <Field label="Topics" hint="Several are separated by commas." error={error}><input class="input mono" value={f.topics} autofocus spellcheck={false} onInput={(e) => set({ topics: e.currentTarget.value })} /></Field>}
    </>
  )
}

function Sink({ f, set, services, error }: PartProps & { services: Service[]; error: string | undefined }) {
  const handlers = services.find((s) => s.name === f.service)?.handlers.map((h) => h.name) ?? []
  const withOwn = (list: string[], own: string): string[] => (own === '' || list.includes(own) ? list : [own, ...list])
  return (
    <div class="form-grid">
      <Field label="Service" error={error}>
        <select class="input" value={f.service} required onChange={(e) => set({ service: e.currentTarget.value, handler: services.find((s) => s.name === e.currentTarget.value)?.handlers[0]?.name ?? '' })}>
          <option value="" disabled>Choose a service</option>
          {withOwn(services.map((s) => s.name), f.service).map((name) => <option key={name} value={name}>{name}</option>)}
        </select>
      </Field>
      <Field label="Handler">
        <select class="input" value={f.handler} required disabled={f.service === ''} onChange={(e) => set({ handler: e.currentTarget.value })}>
          {withOwn(handlers, f.handler).map((name) => <option key={name} value={name}>{name}</option>)}
        </select>
      </Field>
    </div>
  )
}

function Start({ f, set, error }: PartProps & { error: string | undefined }) {
  return (
    <div class="form-grid">
      <Field label="Start with" error={error}>
        <select class="input" value={f.start} onChange={(e) => set({ start: e.currentTarget.value })}>
          <option value="">new records only, unless a property says otherwise</option>
          <option value="latest">new records only</option>
          <option value="earliest">the oldest records</option>
          <option value="timestamp">records from a time on</option>
          <option value="group">the committed offsets of the group</option>
        </select>
      </Field>
      {f.start === 'timestamp' && <Field label="Time" hint="In the time zone of this browser."><input class="input" type="datetime-local" step="1" required value={f.startTime} onInput={(e) => set({ startTime: e.currentTarget.value })} /></Field>}
      {f.start === 'group' && <Field label="Without a committed offset"><select class="input" value={f.otherwise} onChange={(e) => set({ otherwise: e.currentTarget.value })}><option value="latest">new records only</option><option value="earliest">the oldest records</option></select></Field>}
    </div>
  )
}

function Delivery({ f, set, at }: PartProps & { at: (name: string) => string | undefined }) {
  return (
    <div class="form-grid">
      <Field label="Order" error={at('ordering')}>
        <select class="input" value={f.ordering} onChange={(e) => set({ ordering: e.currentTarget.value })}>
          <option value="key">of records with the same key</option>
          <option value="partition">of each topic partition: one record at a time</option>
          <option value="none">none</option>
        </select>
      </Field>
      <Field label="A record that cannot be delivered" error={at('on_error')}>
        <select class="input" value={f.onError} onChange={(e) => set({ onError: e.currentTarget.value })}>
          <option value="block">blocks its topic partition</option>
          <option value="skip">is skipped and counted</option>
          <option value="dead-letter">is set aside as a dead letter</option>
        </select>
      </Field>
      {f.onError === 'dead-letter' && <Field label="Dead-letter topic" hint="{topic} stands for the topic of the record. Without a topic, the server keeps these records." error={at('dead_letter_topic')}><input class="input mono" value={f.deadLetterTopic} placeholder="{topic}.dlq" spellcheck={false} onInput={(e) => set({ deadLetterTopic: e.currentTarget.value })} /></Field>}
    </div>
  )
}

function MoreSettings({ f, set, at }: PartProps & { at: (name: string) => string | undefined }) {
  return (
    <div class="form-grid">
      <Field label="Records without a value" error={at('tombstones')}><select class="input" value={f.tombstones} onChange={(e) => set({ tombstones: e.currentTarget.value })}><option value="deliver">are delivered with an empty input</option><option value="skip">are skipped</option></select></Field>
      <Field label="A topic that is created again" error={at('on_recreate')}><select class="input" value={f.onRecreate} onChange={(e) => set({ onRecreate: e.currentTarget.value })}><option value="error">is an error until a seek</option><option value="earliest">is read from its oldest record</option></select></Field>
      <Field label="Headers that the handler receives" hint="Names, separated by commas; * for all." error={at('headers')}><input class="input mono" value={f.headers} spellcheck={false} onInput={(e) => set({ headers: e.currentTarget.value })} /></Field>
      <Field label="Scope" hint="For example {header:tenant}." error={at('scope')}><input class="input mono" value={f.scope} spellcheck={false} onInput={(e) => set({ scope: e.currentTarget.value })} /></Field>
      <Field label="Limit key" hint="For example {topic}." error={at('limit_key')}><input class="input mono" value={f.limitKey} spellcheck={false} onInput={(e) => set({ limitKey: e.currentTarget.value })} /></Field>
      <Field label="In flight at most" hint="Records of one topic partition." error={at('max_in_flight')}><input class="input" type="number" value={f.maxInFlight} onInput={(e) => set({ maxInFlight: e.currentTarget.value })} /></Field>
    </div>
  )
}

/** Rows of properties, which can be added and removed. */
function Properties({ list, set, title, hint, error }: { list: Property[]; set: (list: Property[]) => void; title: string; hint?: string; error: Error | undefined }) {
  const change = (at: number, part: Partial<Property>): void => set(list.map((p, i) => (i === at ? { ...p, ...part } : p)))
  const wrong = fieldOf(error)
  return (
    <fieldset class="properties">
      <legend class="field-label">{title}</legend>
      {hint && <p class="field-hint">{hint}</p>}
      {list.map((p, i) => (
        <div key={i} class="property">
          <input class="input mono" aria-label={`Name of property ${i + 1}`} placeholder="name" value={p.name} spellcheck={false} autocomplete="off" onInput={(e) => change(i, { name: e.currentTarget.value })} />
          <textarea class="input mono" aria-label={`Value of ${p.name || `property ${i + 1}`}`} rows={p.value.includes('\n') ? 4 : 1} value={p.value} spellcheck={false} onInput={(e) => change(i, { value: e.currentTarget.value })} />
          <Button icon="close" kind="ghost" label={`Remove ${p.name || `property ${i + 1}`}`} onClick={() => set(list.filter((_, n) => n !== i))} />
          {wrong !== undefined && wrong === p.name.trim() && <span class="field-error" role="alert">{error!.message}</span>}
        </div>
      ))}
      <p><Button small icon="plus" onClick={() => set([...list, { name: '', value: '' }])}>Add a property</Button></p>
    </fieldset>
  )
}

/** What is wrong with the whole form, or with a field that it does not show. */
function FormError({ error, shown }: { error: Error | undefined; shown: boolean }) {
  if (!error || shown) return null
  const code = error instanceof APIError ? error.code : undefined
  return <div class="dialog-error" role="alert"><p>{error.message}</p>{code && <ErrorCodeHint code={code} />}</div>
}

export function createKafkaCluster(): void {
  void openDialog('Add a Kafka cluster', (close) => <ClusterDialog close={close} of={undefined} />, true)
}

export function editKafkaCluster(c: KafkaCluster): void {
  void openDialog(`Edit ${c.name}`, (close) => <ClusterDialog close={close} of={c} />, true)
}

const protocols = [['plaintext', 'none'], ['ssl', 'TLS'], ['sasl_plaintext', 'user and password, not encrypted'], ['sasl_ssl', 'user and password, with TLS']] as const
/** Properties with fields of their own. */
const shownProperties = ['bootstrap.servers', 'security.protocol', 'sasl.mechanism', 'sasl.username', 'sasl.password']

function ClusterDialog({ of: c, close }: { of: KafkaCluster | undefined; close: () => void }) {
  const [name, setName] = useState(c?.name ?? '')
  const [values, setValues] = useState<Record<string, string>>(() => Object.fromEntries(shownProperties.map((n) => [n, c?.properties[n] ?? ''])))
  const [others, setOthers] = useState(() => propertiesOf(c?.properties ?? {}).filter((p) => !shownProperties.includes(p.name)))
  const protocol = (values['security.protocol'] || 'plaintext').toLowerCase()
  const sasl = protocol.startsWith('sasl_')
  const form = useSubmission(close, async () => {
    const own = shownProperties.filter((n) => values[n] !== '' && (sasl || !n.startsWith('sasl.')))
    const properties = { ...propertyMap(others), ...Object.fromEntries(own.map((n) => [n, values[n]!.trim()])) }
    if (c) await request(`/kafka-clusters/${segment(c.name)}`, { method: 'PATCH', body: { properties } })
    else await request('/kafka-clusters', { method: 'POST', body: { name: name.trim(), properties } })
    toast('ok', c ? `${c.name} was changed` : `${name.trim()} was added`)
    refreshAll()
    if (!c) navigate(href(`/kafka-clusters/${segment(name.trim())}`))
  })
  const wrong = fieldOf(form.error)
  const at = (n: string): string | undefined => (wrong === n ? form.error?.message : undefined)
  const field = (n: string) => ({ class: 'input mono', value: values[n], spellcheck: false, autocomplete: 'off', onInput: (e: { currentTarget: { value: string } }) => setValues({ ...values, [n]: e.currentTarget.value }) })
  const shown = wrong !== undefined && (wrong === 'name' || others.some((p) => p.name.trim() === wrong) || shownProperties.includes(wrong))
  return (
    <form onSubmit={form.submit}>
      <DialogFrame title={c ? <>Edit <bdi>{c.name}</bdi></> : 'Add a Kafka cluster'} close={close} actions={<FormButtons close={close} action={c ? 'Save' : 'Add'} busy={form.busy} />}>
        {!c && <Field label="Name" hint="Subscriptions refer to it." error={at('name')}><input class="input mono" value={name} autofocus spellcheck={false} placeholder="main" onInput={(e) => setName(e.currentTarget.value)} /></Field>}
        <Field label="Brokers" hint="bootstrap.servers: host:port, separated by commas." error={at('bootstrap.servers')}><input {...field('bootstrap.servers')} placeholder="localhost:9092" /></Field>
        <Field label="Security" hint="security.protocol" error={at('security.protocol')}>
          <select class="input" value={protocol} onChange={(e) => setValues({ ...values, 'security.protocol': e.currentTarget.value === 'plaintext' ? '' : e.currentTarget.value, 'sasl.mechanism': values['sasl.mechanism'] || (e.currentTarget.value.startsWith('sasl_') ? 'PLAIN' : '') })}>
            {protocols.map(([value, title]) => <option key={value} value={value}>{title}</option>)}
          </select>
        </Field>
        {sasl && (
          <div class="form-grid">
            <Field label="Mechanism" hint="sasl.mechanism" error={at('sasl.mechanism')}><select class="input" value={values['sasl.mechanism']} onChange={(e) => setValues({ ...values, 'sasl.mechanism': e.currentTarget.value })}>{['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512', 'OAUTHBEARER'].map((m) => <option key={m}>{m}</option>)}</select></Field>
            {values['sasl.mechanism'] !== 'OAUTHBEARER' && (
              <>
                <Field label="User" hint="sasl.username" error={at('sasl.username')}><input {...field('sasl.username')} /></Field>
                <Field label="Password" hint={values['sasl.password'] === '***' ? 'The stored password is kept.' : 'sasl.password'} error={at('sasl.password')}><input {...field('sasl.password')} type="password" autocomplete="new-password" /></Field>
              </>
            )}
          </div>
        )}
        <Properties list={others} set={setOthers} title="Other properties" hint="Names of librdkafka. Secrets are shown as ***, which keeps what is stored." error={form.error} />
        <FormError error={form.error} shown={shown} />
      </DialogFrame>
    </form>
  )
}
