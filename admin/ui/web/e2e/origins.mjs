// Tests of pages of other origins, which send requests to the admin API through the browser of its user.

import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { open, selected, test } from './lib.mjs'
import { World, freePorts, until } from './world.mjs'

/** Runs in the page: sends one request in every way that a page has, and says which responses it could read. */
const attack = async ({ url, method, body }) => {
  const read = []
  const send = async (way, init) => {
    try {
      const r = await fetch(url, init)
      if (r.type !== 'opaque') read.push(`${way}: ${r.status}`)
    } catch {
      // what a page sees of a response without permission to read it
    }
  }
  await send('with JSON', { method, headers: { 'content-type': 'application/json' }, body, credentials: 'include' })
  await send('with credentials', { method, credentials: 'include' })
  if (method !== 'POST') return read
  await send('as text', { method, mode: 'no-cors', headers: { 'content-type': 'text/plain' }, body, credentials: 'include' })
  navigator.sendBeacon(url, new Blob([body], { type: 'text/plain' }))
  const frame = document.createElement('iframe')
  frame.name = 'result'
  const form = document.createElement('form')
  Object.assign(form, { method: 'POST', action: url, target: 'result', enctype: 'text/plain' })
  const field = document.createElement('input')
  Object.assign(field, { name: body.slice(0, -1), value: '' })
  form.append(field)
  document.body.append(frame, form)
  const loaded = new Promise((resolve) => frame.addEventListener('load', resolve))
  form.submit()
  await loaded
  frame.remove()
  form.remove()
  return read
}

/** Requests of all routes that change something, with parameters and bodies with which they would. */
async function mutations(w) {
  const id = JSON.parse((await w.call('platform/scope/acme/send/Orders/wait', '2h')).text).invocationId
  const body = {
    '/deployments': { uri: w.service, force: true }, '/kafka-clusters': { name: 'evil', properties: { 'bootstrap.servers': '127.0.0.1:1' } },
    '/subscriptions': { source: 'kafka://main/evil', sink: 'service://Cart/add' }, '/tokens': { name: 'evil', roles: ['admin'] },
    '/limits/rules/{pattern}': { concurrency: 1 }, '/cluster/log-levels': { level: 'debug' }, '/services/{service}': { public: false }, '/query': { query: 'SELECT * FROM state' },
    '/services/{service}/state': { object_key: 'book', new_state: {} },
  }
  const [deployment, kafka, subscription, queue] = await Promise.all([
    w.api('/deployments').then((r) => r.deployments[0].id),
    w.api('/kafka-clusters', { method: 'POST', body: { name: 'main', properties: { 'bootstrap.servers': '127.0.0.1:1' } } }).then(() => 'main'),
    until('a subscription', () => w.api('/subscriptions', { method: 'POST', body: { source: 'kafka://main/orders', sink: 'service://Cart/add' } })).then((r) => r.id),
    until('a queue', async () => (await w.api('/vqueues')).vqueues[0]?.id),
  ])
  const values = { invocation_id: id, deployment, kafka_cluster: kafka, subscription, vqueue_id: queue, node: 'n1', partition: '0', service: 'Cart', pattern: 'a', operation: 'kill', topic: 'orders', topic_partition: '0', offset: '0' }
  const list = []
  for (const [route, methods] of Object.entries((await w.api('/openapi')).paths)) {
    for (const method of Object.keys(methods)) {
      if (!['get', 'head', 'parameters'].includes(method)) {
        const path = route.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? 'x')
        list.push({ url: w.admin + path, method: method.toUpperCase(), route, body: JSON.stringify(body[route] ?? {}) })
      }
    }
  }
  return { list, queue, id }
}

/** What requests would have changed. */
const state = async (w) => ({
  ...Object.fromEntries(await Promise.all(['/deployments', '/services', '/kafka-clusters', '/limits/rules', '/tokens', '/jobs', '/cluster/log-levels'].map(async (route) => [route, await w.api(route)]))),
  subscriptions: (await w.api('/subscriptions')).subscriptions.map((s) => s.id),
  queues: (await w.api('/vqueues')).vqueues.map((q) => [q.id, q.paused]),
  invocations: await w.query('SELECT id, status FROM sys_invocation ORDER BY id'),
  changes: await w.query('SELECT action, object FROM sys_audit WHERE outcome IS NULL ORDER BY sequence'),
})

export async function testOrigins() {
  const names = ['page of another port', 'page of another site', 'page whose name was resolved to the server'].map((n) => `a ${n} changes nothing, and reads nothing`)
  if (!names.some(selected)) return
  const w = await World.start({ flowControl: true })
  const server = createServer((_, response) => response.setHeader('content-type', 'text/html').end('<!doctype html><title>page</title><body>'))
  const [port] = await freePorts(1)
  await new Promise((resolve) => server.listen(port, '127.0.0.1', resolve))
  const admin = new URL(w.admin).port
  try {
    await w.register()
    const { list, queue, id } = await mutations(w)
    await until('a state that remains', async () => (await w.api(`/invocations/${id}`)).status === 'suspended')
    assert.ok(list.length > 50)
    const before = await state(w)
    for (const [name, origin] of [[names[0], `http://127.0.0.1:${port}`], [names[1], `http://attacker.example:${port}`], [names[2], `http://attacker.example:${admin}`]]) {
      await test(name, async () => {
        const t = await open(w, '/ui/settings', { allow: [/./], others: [origin] })
        const rebound = new URL(origin).port === admin
        await t.page.goto(rebound ? `${origin}/health` : origin) // the health is a page of the attacker's origin
        const statuses = new Map()
        t.page.on('response', (r) => {
          if (r.request().method() !== 'OPTIONS' && new URL(r.url()).port === admin) statuses.set(r.status(), [...(statuses.get(r.status()) ?? []), `${r.request().method()} ${r.url()}`])
        })
        let posts = 0
        for (const { url, ...m } of list) {
          const target = rebound ? url.replace(w.admin, origin) : url
          const read = await t.page.evaluate(attack, { url: target, method: m.method, body: m.body })
          assert.deepEqual(rebound ? read.filter((r) => !r.endsWith(': 403')) : read, [], `${m.method} ${m.route}`)
          if (m.method === 'POST') posts++
        }
        assert.deepEqual([...statuses.keys()], [403], JSON.stringify([...statuses].filter(([s]) => s !== 403)))
        assert.ok(statuses.get(403).length >= 2 * posts, 'texts and forms reach the server')
        assert.deepEqual(await state(w), before)
        await t.close()
      })
    }
    await test('a page of the same origin changes something', async () => {
      const t = await open(w, '/ui/settings')
      const status = await t.page.evaluate(async (url) => (await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' })).status, `${w.admin}/vqueues/${queue}/pause`)
      assert.ok(status < 300, status)
      assert.notDeepEqual(await state(w), before)
      await t.close()
    })
  } finally {
    server.close()
    await w.stop()
  }
}
