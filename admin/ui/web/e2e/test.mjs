// Browser tests of the web UI: `make ui-test`. Prints "N passed, N failed". ONLY=text,text runs
// the tests whose names contain one of the texts.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { testAccess } from './access.mjs'
import { testAwakeables } from './awakeables.mjs'
import { testCluster } from './cluster.mjs'
import { testDeployments } from './deployments.mjs'
import { testEvents } from './events.mjs'
import { testFailures } from './failures.mjs'
import { testFlowControl } from './flow.mjs'
import { testWalk } from './walk.mjs'
import { testObjects } from './objects.mjs'
import { testLogin } from './login.mjs'
import { testOrigins } from './origins.mjs'
import { testInvocations } from './invocations.mjs'
import { testStress, testStressedLogin } from './stress.mjs'
import { testTypeScript } from './typescript.mjs'
import { axe, closeBrowser, long, noProblems, open, results, test } from './lib.mjs'
import { World, fill, hostile, until } from './world.mjs'

const w = await World.start()

/** Tests of the server w, each with what those before it have left there. */
async function testPages() {
  await test('an empty server shows the first steps, and goes on by itself', async () => {
    const t = await open(w, '/')
    await t.settled()
    assert.equal(new URL(t.page.url()).pathname, '/ui/')
    await t.page.getByText('Run your first durable handler').waitFor()
    await w.register()
    await t.page.getByText('4 services registered').waitFor()
    await t.page.getByRole('link', { name: 'Cart/add' }).first().waitFor()
    noProblems(t)
    await t.close()
  })

  const ids = await fill(w, { many: long ? 300 : 60, steps: long ? 5000 : 300 })
  const deployment = (await w.api('/deployments')).deployments[0].id
  const odd = encodeURIComponent(hostile[0])
  await w.api('/kafka-clusters', { method: 'POST', body: { name: 'main', properties: { 'bootstrap.servers': '127.0.0.1:1', 'client.rack': 'r1', 'statistics.interval.ms': '5' } } })
  const subscription = (await w.api('/subscriptions', { method: 'POST', body: { source: 'kafka://main/orders', sink: 'service://Cart/add' } })).id
  const pages = {
    overview: '/ui/', failures: '/ui/failures', invocations: '/ui/invocations', 'invocations, filtered': '/ui/invocations?status=paused&status=backing-off&service=Orders', 'no invocations': '/ui/invocations?key=there%20is%20none',
    'invocation, completed': `/ui/invocations/${ids.order}`, 'invocation, failing': `/ui/invocations/${ids.flaky}`, 'invocation, paused': `/ui/invocations/${ids.paused}`, 'invocation, waiting': `/ui/invocations/${ids.waiting}`,
    'invocation, scheduled': `/ui/invocations/${ids.later}`, 'invocation, queued': `/ui/invocations/${ids.queued}`, 'invocation, rejected': `/ui/invocations/${ids.rejected}`, 'invocation, long': `/ui/invocations/${ids.steps}`,
    'invocation, large': `/ui/invocations/${ids.large}`, 'invocation, hostile': `/ui/invocations/${ids.hostile}`,
    services: '/ui/services', deployments: '/ui/deployments', service: '/ui/services/Orders', invoke: '/ui/services/Cart?invoke=add', deployment: `/ui/deployments/${deployment}`,
    awakeables: '/ui/awakeables', 'no awakeables': '/ui/awakeables?service=Cart', objects: '/ui/objects', object: '/ui/objects/Cart/book', 'object, hostile': `/ui/objects/Cart/${odd}`, workflow: '/ui/objects/Signup/ada', 'flow control': '/ui/flow-control', cluster: '/ui/cluster', sql: '/ui/sql', jobs: '/ui/jobs', settings: '/ui/settings',
    subscriptions: '/ui/subscriptions', subscription: `/ui/subscriptions/${subscription}`, 'kafka clusters': '/ui/kafka-clusters', 'kafka cluster': '/ui/kafka-clusters/main', bundle: '/ui/bundle',
    'no such page': '/ui/nonsense',
  }
  for (const [name, path] of Object.entries(pages)) {
    for (const theme of ['light', 'dark']) {
      await test(`page ${name}, ${theme}`, async () => {
        const t = await open(w, path, { theme, width: theme === 'dark' && !long ? 1440 : 1440 })
        await t.page.waitForFunction(() => document.querySelectorAll('.skeleton').length === 0 && (document.querySelector('main')?.textContent.trim() ?? '') !== '')
        assert.equal(await t.page.locator('main .error-box').count(), 0, 'an error is shown')
        const violations = await axe(t.page)
        assert.deepEqual(violations, [])
        const wide = await t.page.evaluate(() => document.documentElement.scrollWidth > innerWidth)
        assert.equal(wide, false, 'the page is wider than the window')
        const tall = await t.page.evaluate(() => [...document.querySelectorAll('.tabs')].some((e) => e.scrollHeight > e.clientHeight))
        assert.equal(tall, false, 'tabs have a vertical scroll bar')
        noProblems(t)
        await t.close()
      })
    }
    if (long) {
      await test(`page ${name}, narrow`, async () => {
        const t = await open(w, path, { width: 360 })
        await t.page.waitForFunction(() => document.querySelectorAll('.skeleton').length === 0)
        assert.equal(await t.page.evaluate(() => document.getElementById('main').scrollWidth > document.getElementById('main').clientWidth + 1), false, 'the page scrolls sideways')
        noProblems(t)
        await t.close()
      })
    }
  }

  await testEvents(w, subscription)
  await testFailures(w)
  await testInvocations(w, ids)
  await testStress(w)

  for (const [path, names] of Object.entries({
    '/ui/failures': 'td .t-service', '/ui/invocations': 'td .t-service', '/ui/services': 'td:first-child a',
    [`/ui/invocations/${ids.flaky}`]: '.inv-title :is(.t-service, .crumbs a)',
  })) {
    await test(`a long name of a service does not push other contents away on ${path}`, async () => {
      const t = await open(w, path)
      await t.settled()
      await t.page.locator(names).first().waitFor()
      const hidden = await t.page.evaluate((names) => {
        for (const e of document.querySelectorAll(names)) e.textContent = `com.example.${'enterprise.'.repeat(14)}OrderFulfilmentService`
        const inside = (e, box) => e.getBoundingClientRect().right <= box.getBoundingClientRect().right + 1
        const handlers = [...document.querySelectorAll('td .t-handler')].filter((e) => !e.parentElement.querySelector('.t-key') && !inside(e, e.closest('td')))
        const boxes = [...document.querySelectorAll('.table-wrap, .inv-title')].filter((e) => e.scrollWidth > e.clientWidth + 1)
        return [...handlers, ...boxes].map((e) => e.className)
      }, names)
      assert.deepEqual(hidden, [])
      await t.close()
    })
  }

  await test('filters are in the address and survive reload, back and forward', async () => {
    const t = await open(w, '/ui/invocations')
    await t.settled()
    await t.page.getByRole('button', { name: /^Paused/ }).click()
    await t.page.waitForURL(/status=paused/)
    await t.page.getByLabel('Filter', { exact: true }).fill(`key:${hostile[1]}`)
    await t.page.keyboard.press('Enter')
    await t.page.waitForURL(/key=/)
    await t.page.reload()
    await t.page.locator('.chip').getByText(hostile[1]).waitFor()
    await t.page.getByText('No invocation matches').waitFor()
    await t.page.goBack()
    await t.page.locator('.chip').waitFor({ state: 'detached' })
    await t.page.locator('tbody').getByText('flaky').waitFor()
    await t.page.goForward()
    await t.page.locator('.chip').waitFor()
    noProblems(t)
    await t.close()
  })

  await test('the headings of the list sort it, and results filter it', async () => {
    const t = await open(w, '/ui/invocations')
    const heading = (name) => t.page.getByRole('columnheader', { name })
    await t.page.locator('tbody tr').first().waitFor()
    assert.equal(await heading('Created').getAttribute('aria-sort'), 'descending')
    await heading('Created').getByRole('button').click()
    await t.page.waitForURL(/oldest_first=true/)
    const oldest = (await w.api('/invocations?limit=1&oldest_first=true')).invocations[0].id
    await t.page.locator('tbody tr').first().getByText(oldest).waitFor()
    assert.equal(await heading('Created').getAttribute('aria-sort'), 'ascending')
    await t.page.goto(`${w.admin}/ui/invocations?result=failure`)
    const { total, by_result: results } = await w.api('/invocations/counts')
    assert.ok(results.failure > 0 && results.failure < total)
    await t.page.getByText(`Newest ${Math.min(results.failure, 100)} of ${results.failure}`).waitFor()
    await t.page.getByRole('button', { name: /^Succeeded/ }).click()
    await t.page.waitForURL(/result=failure&result=success/)
    assert.deepEqual(await axe(t.page), [])
    noProblems(t)
    await t.close()
  })

  await test('lists go on beyond the first page', async () => {
    const t = await open(w, '/ui/invocations')
    await t.settled()
    const total = Number((await w.query('SELECT COUNT(*) AS n FROM sys_invocation'))[0].n)
    let seen = await t.page.locator('tbody tr').count()
    assert.equal(seen, Math.min(100, total))
    while (await t.page.getByRole('button', { name: 'Next' }).isVisible()) {
      const url = t.page.url()
      await t.page.getByRole('button', { name: 'Next' }).click()
      await t.page.waitForURL((u) => u.href !== url)
      await t.page.waitForFunction(() => !document.querySelector('.table-wrap.dim'))
      seen += await t.page.locator('tbody tr').count()
    }
    assert.ok(seen >= total)
    noProblems(t)
    await t.close()
  })

  await test('the keyboard goes to pages, moves rows, selects and opens', async () => {
    const t = await open(w, '/ui/')
    await t.settled()
    await t.page.keyboard.press('g')
    await t.page.keyboard.press('i')
    await t.page.waitForURL(/\/ui\/invocations$/)
    await t.page.locator('tbody tr').first().waitFor()
    await t.page.keyboard.press('j')
    await t.page.keyboard.press('j')
    await t.page.keyboard.press('x')
    await t.page.getByText('1 selected').waitFor()
    await t.page.keyboard.press('Enter')
    await t.page.waitForURL(/\/ui\/invocations\/inv_/)
    await t.page.keyboard.press('/')
    await t.page.locator('dialog input:focus').waitFor()
    await t.page.keyboard.type(ids.flaky)
    await t.page.keyboard.press('Enter')
    await t.page.waitForURL(new RegExp(ids.flaky))
    await t.page.keyboard.press('?')
    await t.page.getByRole('dialog').getByText('Keyboard shortcuts').waitFor()
    await t.page.keyboard.press('Escape')
    await t.page.getByRole('dialog').waitFor({ state: 'detached' })
    noProblems(t)
    await t.close()
  })

  await test('an invocation is cancelled after a confirmation', async () => {
    const id = await w.send('Orders/wait', '3h')
    await w.status(id, 'suspended')
    const t = await open(w, `/ui/invocations/${id}`)
    await t.page.getByRole('button', { name: 'Cancel' }).click()
    await t.page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
    await t.page.locator('.inv-head').getByText('Cancelled').waitFor()
    await w.status(id, 'completed')
    await t.page.locator('.failure-card').getByRole('heading', { name: 'Cancelled' }).waitFor()
    await t.page.locator('.j-row.k-sleep').getByText('not completed').waitFor()
    noProblems(t)
    await t.close()
  })

  await test('an invocation is paused with a reason, shown, and resumed', async () => {
    const id = await w.send('Orders/flaky', 'pause me')
    await w.status(id, 'backing-off')
    const t = await open(w, `/ui/invocations/${id}`)
    await t.page.getByRole('button', { name: 'More actions' }).click()
    await t.page.getByRole('menuitem', { name: 'Pause' }).click()
    await t.page.getByLabel('Reason').fill('<b>looking</b> into it')
    await t.page.getByRole('dialog').getByRole('button', { name: 'Pause' }).click()
    await t.page.locator('.why').getByText('<b>looking</b> into it').waitFor()
    await t.page.getByRole('button', { name: 'Resume' }).click()
    await t.page.getByRole('dialog').getByRole('button', { name: 'Resume' }).click()
    await until('the resume', async () => (await w.api(`/invocations/${id}`)).status !== 'paused')
    await w.api(`/invocations/${id}/kill`, { method: 'PATCH' })
    noProblems(t)
    await t.close()
  })

  await test('selected invocations are killed together', async () => {
    for (const n of [1, 2, 3]) await w.send('Cart/batch/hold', `${n}h`)
    const t = await open(w, '/ui/invocations?key=batch')
    await t.page.locator('tbody tr').nth(2).waitFor()
    await t.page.getByLabel('Select all on this page').click()
    await t.page.getByRole('button', { name: 'Kill', exact: true }).click()
    await t.page.getByRole('dialog').getByRole('button', { name: /Kill/ }).click()
    await until('the end of all', async () => Number((await w.query("SELECT COUNT(*) AS n FROM sys_invocation WHERE target_service_key = 'batch' AND status <> 'completed'"))[0].n) === 0)
    await t.page.getByText('Killed').first().waitFor()
    noProblems(t)
    await t.close()
  })

  await test('a finished invocation is restarted as new', async () => {
    const t = await open(w, `/ui/invocations/${ids.order}`)
    await t.page.getByRole('button', { name: 'Restart as new' }).click()
    await t.page.getByRole('dialog').getByRole('button', { name: 'Restart as new' }).click()
    await t.page.waitForURL((u) => /inv_/.test(u.pathname) && !u.pathname.endsWith(ids.order))
    await t.page.locator('.inv-head').getByText('Succeeded').waitFor()
    noProblems(t)
    await t.close()
  })

  await test('the journal shows steps with payloads, and calls unfold in place', async () => {
    const t = await open(w, `/ui/invocations/${ids.order}`)
    await t.page.locator('.j-line', { hasText: 'create id' }).click()
    await t.page.locator('.j-detail').getByText('"order-book"').waitFor()
    await t.page.getByText('Unfold calls').click()
    await t.page.locator('.j-note').first().waitFor()
    await t.page.locator('.j-line', { hasText: 'charged 2.00' }).first().waitFor()
    noProblems(t)
    await t.close()
  })

  await test('a long journal renders only what is visible', async () => {
    const t = await open(w, '/ui/settings')
    const reads = []
    t.page.on('request', (r) => reads.push(.../\/journal\?from=(\d+)/.exec(r.url())?.slice(1) ?? []))
    await t.page.goto(`${w.admin}/ui/invocations/${ids.steps}`)
    await t.page.locator('.j-row').nth(10).waitFor()
    await t.page.waitForFunction((n) => document.querySelector('.count')?.textContent.replaceAll(',', '') >= String(n), long ? 5000 : 300)
    const rows = await t.page.locator('.j-row').count()
    assert.ok(rows < 120, `${rows} rows are rendered`)
    await t.page.locator('#main').evaluate((m) => m.scrollTo(0, m.scrollHeight))
    await t.page.locator('.j-row.k-output').waitFor()
    assert.ok(reads.length > 1)
    assert.equal(new Set(reads).size, reads.length, `entries are read more than once: from ${reads}`)
    noProblems(t)
    await t.close()
  })

  await test('a large payload is read on request', async () => {
    const t = await open(w, `/ui/invocations/${ids.large}`)
    await t.page.locator('.j-line', { hasText: 'return' }).click()
    await t.page.getByRole('button', { name: /^Show 586/ }).click()
    await t.page.locator('.payload-body').getByText('0123456789abcdef').waitFor()
    noProblems(t)
    await t.close()
  })

  await test('hostile names and payloads are text', async () => {
    const t = await open(w, `/ui/invocations/${ids.hostile}`)
    await t.page.locator('h1').getByText(hostile[0]).waitFor()
    await t.page.locator('.j-line').first().click()
    await t.page.locator('.j-detail .payload-body').first().waitFor()
    assert.equal(await t.page.locator('main img, main script').count(), 0)
    for (const name of hostile) {
      await t.page.goto(`${w.admin}/ui/objects/Cart/${encodeURIComponent(name)}`)
      await t.page.locator('.state-row').first().waitFor()
      assert.equal(await t.page.locator('h1').innerText(), name.trim())
      assert.equal(await t.page.locator('main img, main script').count(), 0)
    }
    noProblems(t)
    await t.close()
  })

  await test('a handler is invoked from its page', async () => {
    const t = await open(w, '/ui/services/Orders?invoke=place')
    await t.page.locator('.cm-content').waitFor()
    await t.page.locator('.cm-content').click()
    await t.page.keyboard.press('Control+a')
    await t.page.keyboard.type('{"item":"from the page","amount":3')
    await t.page.getByRole('button', { name: 'Call', exact: true }).last().click()
    await t.page.locator('.answer').getByText('Succeeded').waitFor()
    await t.page.locator('.answer .id a').click()
    await t.page.locator('.inv-head').getByText('Succeeded').waitFor()
    noProblems(t)
    await t.close()
  })

  await test('the input of a handler is edited in a form and as JSON', async () => {
    const t = await open(w, '/ui/services/Orders?invoke=place')
    await t.page.locator('.cm-content').getByText('"item"').waitFor()
    await t.page.getByRole('button', { name: 'Form', exact: true }).click()
    await t.page.getByLabel('item').fill('from "the" form')
    await t.page.getByLabel('amount').fill('4')
    await t.page.getByText('edited as JSON:').waitFor()
    assert.deepEqual(await axe(t.page), [])
    await t.page.getByRole('button', { name: 'JSON', exact: true }).first().click()
    await t.page.locator('.cm-content').getByText('"from \\"the\\" form"').waitFor()
    await t.page.getByRole('button', { name: 'Call', exact: true }).last().click()
    await t.page.locator('.answer').getByText('Succeeded').waitFor()
    await t.page.locator('.answer').getByText('order-from').waitFor()
    noProblems(t)
    await t.close()
  })

  await test('a deployment is checked and registered', async () => {
    const t = await open(w, '/ui/services?register=true')
    await t.page.getByPlaceholder('http://localhost:9080').fill(w.service)
    await t.page.getByRole('button', { name: 'Check' }).click()
    await t.page.locator('.plan').getByText('Cart').waitFor()
    await t.page.getByRole('dialog').getByRole('button', { name: 'Replace it' }).click() // the address is known
    await t.page.getByRole('dialog').getByRole('button', { name: 'Register', exact: true }).click()
    await t.page.getByRole('dialog').waitFor({ state: 'detached' })
    noProblems(t)
    await t.close()
  })

  await test('an address without an endpoint is refused with the reason', async () => {
    const t = await open(w, '/ui/services?register=true', { allow: [/Failed to load resource/] })
    await t.page.getByPlaceholder('http://localhost:9080').fill('http://127.0.0.1:1')
    await t.page.getByRole('button', { name: 'Check' }).click()
    await t.page.getByRole('alert').getByText('META0003').waitFor()
    noProblems(t)
    await t.close()
  })

  await test('settings of a service are changed', async () => {
    const t = await open(w, '/ui/services/Payments')
    await t.page.getByRole('button', { name: 'Settings' }).click()
    await t.page.getByLabel('Inactivity timeout').fill('2m')
    await t.page.getByText('1 change').waitFor()
    await t.page.getByRole('button', { name: 'Save' }).click()
    await t.page.getByRole('dialog').waitFor({ state: 'detached' })
    assert.match((await w.api('/services/Payments')).inactivity_timeout, /^2m/)
    assert.notEqual((await w.api('/services/Payments')).overridden.inactivity_timeout, undefined)
    await t.page.getByText(/changed, was /).first().waitFor()
    assert.deepEqual(await axe(t.page), [])
    noProblems(t)
    await t.close()
  })

  await testObjects(w)
  await testAwakeables(w)

  await test('a query runs, links ids, and shows its error', async () => {
    const t = await open(w, '/ui/sql?query=' + encodeURIComponent("SELECT id, status FROM sys_invocation WHERE status = 'paused'"), { allow: [/status of 400/] })
    await t.page.locator('.grid-result a').getByText(ids.paused).waitFor()
    await t.page.locator('.cm-content').click()
    await t.page.keyboard.press('Control+a')
    await t.page.keyboard.type('SELECT nonsense FROM sys_invocation')
    await t.page.keyboard.press('Control+Enter')
    await t.page.getByRole('alert').getByText('nonsense').waitFor()
    noProblems(t)
    await t.close()
  })

  await test('the plan of a query says what is read', async () => {
    const t = await open(w, '/ui/sql?query=' + encodeURIComponent("SELECT id FROM sys_invocation WHERE target_service_name = 'Cart' ORDER BY created_at"))
    await t.page.locator('.grid-result').waitFor()
    await t.page.getByRole('button', { name: 'Plan' }).click()
    const steps = t.page.locator('.plan-steps li')
    await steps.getByText('read from sys_invocation where target_service_name = ?').waitFor()
    await steps.getByText('sort for ORDER BY').waitFor()
    assert.deepEqual(await axe(t.page), [])
    noProblems(t)
    await t.close()
  })

  await test('a query with a value that a column never has gets a notice, which selects the place', async () => {
    const t = await open(w, '/ui/sql?query=' + encodeURIComponent("SELECT id\nFROM sys_invocation\nWHERE status = 'runing'"))
    const notice = t.page.getByRole('list', { name: 'Notices' }).getByText("status is never 'runing'; did you mean 'running'?")
    await notice.waitFor()
    await t.page.getByText('No rows', { exact: true }).waitFor()
    assert.deepEqual(await axe(t.page), [])
    await notice.click()
    await t.page.keyboard.press('Shift+End')
    await t.page.keyboard.type("'running'")
    await t.page.keyboard.press('Control+Enter')
    await notice.waitFor({ state: 'detached' })
    assert.match(new URL(t.page.url()).searchParams.get('query'), /WHERE status = 'running'$/)
    await t.page.getByText(/ read$/).waitFor()
    noProblems(t)
    await t.close()
  })

  await test('SQL is completed from the tables of the server, kept in the history, and its result exported', async () => {
    const t = await open(w, '/ui/sql')
    await t.page.locator('.cm-content').click()
    await t.page.keyboard.press('ControlOrMeta+a')
    await t.page.keyboard.type('SELECT target FROM sys_inv')
    await t.page.getByRole('option', { name: /^sys_invocation$/ }).waitFor()
    await t.page.keyboard.press('ControlOrMeta+a')
    await t.page.keyboard.type("SELECT target, status FROM sys_invocation WHERE status = 'paused'")
    await t.page.keyboard.press('Control+Enter')
    await t.page.locator('.grid-result').getByText('Orders/flaky').waitFor()
    await t.page.getByRole('button', { name: 'Export' }).click()
    const download = t.page.waitForEvent('download')
    await t.page.getByRole('menuitem', { name: /CSV/ }).click()
    assert.match(readFileSync(await (await download).path(), 'utf8'), /^target,status\r?\nOrders\/flaky,paused/)
    await t.page.reload()
    await t.page.getByRole('button', { name: 'History' }).click()
    const row = t.page.getByRole('dialog').getByRole('row', { name: /SELECT target, status FROM sys_invocation WHERE status = 'paused'/ })
    assert.match(await row.innerText(), /\s2\s+(<1ms|[\d.]+m?s)\s+(<1ms|[\d.]+m?s)\s+[1-9]\d*\s+[1-9][\d,]*\s/, 'two runs, their times, the rows, and the rows that were read')
    assert.deepEqual(await axe(t.page), [])
    await row.getByRole('button').click()
    await t.page.locator('.cm-content').getByText("'paused'").waitFor()
    noProblems(t)
    await t.close()
  })

  await test('an exported invocation opens from its file', async () => {
    const t = await open(w, `/ui/invocations/${ids.order}`)
    await t.page.getByRole('button', { name: 'More actions' }).click()
    const download = t.page.waitForEvent('download')
    await t.page.getByRole('menuitem', { name: 'Export bundle' }).click()
    const file = await (await download).path()
    await t.page.goto(`${w.admin}/ui/bundle`)
    await t.page.locator('input[type=file]').setInputFiles(file)
    await t.page.locator('.j-line', { hasText: 'create id' }).waitFor()
    noProblems(t)
    await t.close()
  })

  await test('an exported invocation has its large payloads', async () => {
    const t = await open(w, `/ui/invocations/${ids.large}`)
    await t.page.getByRole('button', { name: 'More actions' }).click()
    const download = t.page.waitForEvent('download')
    await t.page.getByRole('menuitem', { name: 'Export bundle' }).click()
    const file = await (await download).path()
    await t.page.goto(`${w.admin}/ui/bundle`)
    const reads = []
    t.page.on('request', (r) => r.url().includes('/invocations/inv_') && reads.push(r.url()))
    await t.page.locator('input[type=file]').setInputFiles(file)
    await t.page.locator('.j-line', { hasText: 'return' }).click()
    await t.page.locator('.payload-body').getByText('0123456789abcdef').waitFor()
    assert.deepEqual(reads, [])
    const damaged = JSON.parse(readFileSync(file, 'utf8'))
    damaged.payloads[0] = '*'
    await t.page.locator('input[type=file]').setInputFiles({ name: 'damaged.json', mimeType: 'application/json', buffer: Buffer.from(JSON.stringify(damaged)) })
    await t.page.getByText('This file is not an invocation bundle.').waitFor()
    noProblems(t)
    await t.close()
  })

  await test('a message is not covered by a dialog that opens after it', async () => {
    const t = await open(w, `/ui/invocations/${ids.order}`)
    await t.page.getByRole('button', { name: 'More actions' }).click()
    await t.page.getByRole('menuitem', { name: 'Export bundle' }).click()
    const message = t.page.locator('.toast')
    await message.getByText('journal entries exported').waitFor()
    const { x, y, width, height } = await message.boundingBox()
    const picture = () => t.page.screenshot({ clip: { x: x + 10, y: y + 5, width: width - 20, height: height - 10 } })
    const before = await picture()
    await t.page.keyboard.press('ControlOrMeta+k')
    await t.page.locator('dialog[open]').waitFor()
    await until('the message to look as before', async () => before.equals(await picture()))
    noProblems(t)
    await t.close()
  })

  await testDeployments(w)

  await test('a restart of the server shows a notice, and the page goes on', async () => {
    const t = await open(w, '/ui/cluster', { allow: [/ERR_/, /Failed to load resource/] })
    await t.page.getByRole('heading', { name: 'n1' }).waitFor()
    await w.stopServer()
    await t.page.locator('.stale').first().waitFor()
    await t.page.getByRole('heading', { name: 'n1' }).waitFor()
    await w.startServer()
    await t.page.waitForFunction(() => document.querySelectorAll('.stale').length === 0)
    noProblems(t)
    await t.close()
  })
}

/** Tests with servers of their own. */
async function testOthers() {
  await testWalk()
  await testTypeScript()
  await testAccess()
  await testStressedLogin()
  await testLogin()
  await testOrigins()
  await testFlowControl()
}

try {
  for (const end of await Promise.allSettled([testPages(), testOthers()])) if (end.status === 'rejected') throw end.reason
  await testCluster() // alone: nodes that get no CPU are taken for lost
} finally {
  await closeBrowser()
  await w.stop()
}
console.log(`${results.passed} passed, ${results.failed} failed`)
process.exitCode = results.failed === 0 && results.passed > 0 ? 0 : 1
