// Writes screenshots of the pages: `make ui-shots`, into SHOTS or a temporary folder.

import { mkdirSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { World, browser, fill } from './world.mjs'

const out = process.env.SHOTS ?? mkdtempSync(path.join(tmpdir(), 'ui-shots-'))
mkdirSync(out, { recursive: true })
const only = process.env.ONLY?.split(',')
const themes = (process.env.THEMES ?? 'light,dark').split(',')
const widths = (process.env.WIDTHS ?? '1440,360').split(',').map(Number)

const w = await World.start({ nodes: Number(process.env.NODES ?? 3), flowControl: true })
const b = await browser()
const errors = []
try {
  const shoot = async (name, url, prepare) => {
    if (only && !only.includes(name)) return
    for (const theme of themes) {
      for (const width of widths) {
        const context = await b.newContext({ viewport: { width, height: width < 500 ? 844 : 900 }, colorScheme: theme })
        const page = await context.newPage()
        page.on('console', (m) => m.type() === 'error' && errors.push(`${name}: ${m.text()}`))
        page.on('pageerror', (e) => errors.push(`${name}: ${e.stack}`))
        await page.goto(w.admin + url)
        await page.waitForTimeout(900)
        if (prepare) await prepare(page).catch((e) => errors.push(`${name}: ${e.message}`))
        await page.waitForTimeout(250)
        await page.screenshot({ path: path.join(out, `${name}-${theme}-${width}.png`) })
        await context.close()
      }
    }
  }
  await shoot('empty', '/ui/')
  await shoot('empty-invocations', '/ui/invocations')
  const ids = await fill(w, { many: Number(process.env.MANY ?? 120), steps: 300 })
  for (const [pattern, concurrency] of [['acme', 2], ['*', 40]]) await w.api('/limits/rules', { method: 'PUT', body: [{ pattern, limits: { concurrency }, description: concurrency < 5 ? 'contract of 2026' : 'default of all tenants' }] })
  ids.scoped = []
  for (let i = 0; i < 7; i++) ids.scoped.push(JSON.parse((await w.call('platform/scope/acme/send/Orders/work', '1h')).text).invocationId)
  for (let i = 0; i < 3; i++) await w.call(`platform/scope/tenant-${i}/call/Orders/echo`, i)
  await w.call('Cart/warehouse/set', Object.fromEntries(Array.from({ length: 640 }, (_, i) => [`shelf-${String(i).padStart(4, '0')}`, { item: ['book', 'lamp', 'chair'][i % 3], amount: i }])))
  await shoot('overview', '/ui/')
  await shoot('invocations', '/ui/invocations')
  await shoot('invocations-filtered', '/ui/invocations?status=backing-off&status=paused&service=Orders', async (p) => {
    await p.locator('tbody input[type=checkbox]').first().click()
  })
  await shoot('invocation', `/ui/invocations/${ids.order}`, async (p) => {
    await p.getByText('Unfold calls').click({ timeout: 3000 })
    await p.waitForTimeout(500)
    await p.locator('.j-line').nth(1).click()
  })
  await shoot('invocation-failing', `/ui/invocations/${ids.flaky}`)
  await shoot('invocation-paused', `/ui/invocations/${ids.paused}`)
  await shoot('invocation-waiting', `/ui/invocations/${ids.waiting}`)
  await shoot('invocation-queued', `/ui/invocations/${ids.queued}`)
  await shoot('invocation-scoped', `/ui/invocations/${ids.scoped.at(-1)}`)
  await shoot('invocation-hostile', `/ui/invocations/${ids.hostile}`)
  for (let i = 0; i < 5; i++) await w.send('Orders/review', `payment ${i}`)
  const waiting = await w.send('Orders/review', 'contract')
  await w.status(waiting, 'suspended')
  await shoot('awakeables', '/ui/awakeables')
  await shoot('awakeables-resolve', '/ui/awakeables', async (p) => {
    await p.getByRole('button', { name: 'Resolve' }).first().click()
  })
  await shoot('awakeables-none', '/ui/awakeables?service=Payments&key=k')
  await shoot('invocation-awakeable', `/ui/invocations/${waiting}`)
  await shoot('services', '/ui/services')
  await shoot('deployments', '/ui/deployments')
  await shoot('service', '/ui/services/Cart')
  await shoot('invoke', '/ui/services/Orders?invoke=place', async (p) => {
    await p.waitForTimeout(600)
    await p.getByRole('button', { name: 'Call', exact: true }).last().click()
    await p.waitForTimeout(900)
  })
  const deployment = (await w.api('/deployments')).deployments[0].id
  await shoot('deployment', `/ui/deployments/${deployment}`)
  await shoot('register', '/ui/services?register=true', async (p) => {
    await p.getByPlaceholder('http://localhost:9080').fill(w.service)
    await p.getByRole('button', { name: 'Check' }).click()
    await p.waitForTimeout(800)
  })
  await shoot('objects', '/ui/objects')
  await shoot('object', '/ui/objects/Cart/book', async (p) => {
    await p.locator('.state-line').nth(1).click({ timeout: 2000 })
  })
  await shoot('object-large', '/ui/objects/Cart/warehouse')
  await shoot('object-busy', '/ui/objects/Cart/busy')
  await shoot('flow', '/ui/flow-control')
  await shoot('flow-counters', '/ui/flow-control/counters')
  await shoot('flow-queues', '/ui/flow-control/queues')
  await shoot('failures', '/ui/failures')
  await shoot('cluster', '/ui/cluster', async (p) => {
    await p.getByRole('button', { name: 'Partition 1' }).click({ timeout: 2000 })
  })
  await shoot('sql', '/ui/sql?query=' + encodeURIComponent('SELECT id, target, status, created_at, last_failure FROM sys_invocation LIMIT 40'), (p) => p.waitForTimeout(700))
  const group = (await w.api('/failures?muted=false')).groups.find((g) => g.handler === 'flaky')
  await shoot('failure', `/ui/failures/${group.id}`)
  await shoot('failure-resume', `/ui/failures/${group.id}`, (p) => p.getByRole('button', { name: 'Resume all' }).click())
  await shoot('restart', `/ui/invocations/${ids.order}`, async (p) => {
    await p.getByRole('button', { name: 'Restart as new' }).click()
    await p.getByRole('group', { name: 'Preview' }).waitFor()
  })
  await shoot('copy', `/ui/invocations/${ids.order}`, async (p) => {
    await p.getByRole('button', { name: 'More actions' }).click()
    await p.getByRole('menuitem', { name: 'Copy with edited input' }).click()
    await p.locator('dialog .cm-content').waitFor()
  })
  await shoot('invoke-form', '/ui/services/Orders?invoke=place', async (p) => {
    await p.getByRole('button', { name: 'Form', exact: true }).click()
    await p.getByText('Options', { exact: true }).click()
  })
  await shoot('edit-state', '/ui/objects/Cart/book', async (p) => {
    await p.getByRole('button', { name: 'Edit last' }).click()
    await p.locator('dialog .cm-content').waitFor()
  })
  await w.api('/kafka-clusters', { method: 'POST', body: { name: 'main', properties: { 'bootstrap.servers': '127.0.0.1:1' } } })
  const subscription = (await w.api('/subscriptions', { method: 'POST', body: { source: 'kafka://main/orders', sink: 'service://Cart/add' } })).id
  await w.api('/subscriptions', { method: 'POST', body: { source: 'kafka://main/returns', sink: 'service://Orders/echo' } })
  await shoot('subscriptions', '/ui/subscriptions')
  await shoot('subscription', `/ui/subscriptions/${subscription}`)
  await shoot('kafka-cluster', '/ui/kafka-clusters/main')
  await w.api('/jobs', { method: 'POST', body: { operation: 'resume', filter: { handler: 'flaky' } } })
  await shoot('jobs', '/ui/jobs')
  await shoot('job', `/ui/jobs/${(await w.api('/jobs')).jobs[0].id}`)
  await shoot('access', '/ui/access')
  await shoot('tokens', '/ui/tokens')
  await shoot('audit', '/ui/audit')
  await shoot('bundle', '/ui/bundle')
  await shoot('settings', '/ui/settings')
  await shoot('palette', '/ui/', async (p) => {
    await p.keyboard.press('/')
    await p.keyboard.type('ord')
    await p.waitForTimeout(400)
  })
  await shoot('confirm', `/ui/invocations/${ids.waiting}`, async (p) => {
    await p.getByRole('button', { name: 'Cancel' }).click()
  })
  await shoot('missing', '/ui/invocations/inv_1notthere000000000000000000')
  await shoot('sql-failed', '/ui/sql?query=' + encodeURIComponent("SELECT stauts FROM sys_invocation"), (p) => p.waitForTimeout(700))
  await shoot('sql-notice', '/ui/sql?query=' + encodeURIComponent("SELECT id FROM sys_invocation WHERE status = 'runing'"), (p) => p.waitForTimeout(700))
  await shoot('node-drain', '/ui/cluster', async (p) => {
    await p.getByRole('button', { name: 'Actions of n3' }).click()
    await p.getByRole('menuitem', { name: 'Drain' }).click()
  })
  if (w.stopServer && Number(process.env.NODES ?? 3) > 1) {
    await w.stopServer(2)
    await shoot('cluster-degraded', '/ui/cluster', (p) => p.waitForTimeout(4000))
    await w.stopServer(1)
    await shoot('cluster-unavailable', '/ui/cluster', (p) => p.waitForTimeout(4000))
    await shoot('overview-unavailable', '/ui/', (p) => p.waitForTimeout(4000))
  }
} finally {
  await b.close()
  await w.stop()
}
for (const e of new Set(errors)) console.log(e)
console.log(out)
