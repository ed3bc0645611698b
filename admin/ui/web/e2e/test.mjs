// Browser tests of the web UI: `make ui-test`. Prints "N passed, N failed".

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import assert from 'node:assert/strict'
import { World, browser, fill, hostile, until } from './world.mjs'

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const long = Boolean(process.env.UI_LONG)
const only = process.env.ONLY?.split(',')

let passed = 0
let failed = 0
const contexts = new Set()
async function test(name, run) {
  if (only && !only.some((o) => name.includes(o))) return
  try {
    await run()
    passed++
    console.log(`ok    ${name}`)
  } catch (err) {
    failed++
    console.log(`FAIL  ${name}\n      ${String(err.stack ?? err).split('\n').slice(0, 12).join('\n      ')}`)
  }
  for (const c of contexts) await c.close().catch(() => undefined)
  contexts.clear()
}

const w = await World.start()
const b = await browser()
const patience = Number(process.env.UI_PATIENCE ?? 60_000)

/** Opens a page that reports errors of the console, of scripts, and requests to other origins. */
async function open(path, { theme = 'light', width = 1440, allow = [], world = w } = {}) {
  const context = await b.newContext({ viewport: { width, height: 900 }, colorScheme: theme, reducedMotion: 'reduce' })
  contexts.add(context)
  context.setDefaultTimeout(patience)
  const page = await context.newPage()
  const problems = []
  page.on('console', (m) => (m.type() === 'error' || /Content.Security/i.test(m.text())) && !allow.some((a) => a.test(m.text())) && problems.push(`console: ${m.text()} ${m.location().url}`))
  page.on('pageerror', (e) => problems.push(`script: ${e.stack}`))
  page.on('dialog', (d) => {
    problems.push(`a dialog of the browser: ${d.message()}`)
    void d.dismiss()
  })
  page.on('request', (r) => {
    const { origin, protocol } = new URL(r.url())
    if (protocol !== 'data:' && protocol !== 'blob:' && origin !== world.admin && origin !== world.ingress) problems.push(`request to ${r.url()}`)
  })
  await page.goto(world.admin + path)
  return { page, problems, close: () => context.close(), settled: () => settled(page) }
}

/** Nothing is loading any longer. */
const settled = async (page) => {
  await page.locator('h1').first().waitFor()
  await page.waitForFunction(() => document.querySelectorAll('.skeleton').length === 0 && document.querySelector('main')?.textContent.trim() !== '')
}

const noProblems = (t) => assert.deepEqual(t.problems, [])

async function axe(page) {
  await page.evaluate(axeSource)
  const { violations } = await page.evaluate(() => window.axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }))
  return violations.map((v) => `${v.id} (${v.impact}): ${v.nodes.slice(0, 3).map((n) => `${n.target.join(' ')} ${n.any?.[0]?.message ?? n.all?.[0]?.message ?? ''}`).join(' | ')}`)
}

/** Tests of a server that requires tokens. */
async function testAccess() {
  const token = 'administrator-of-a-test-0123456789'
  const world = await World.start({ token, env: { PLATFORM_SECURITY__MODE: 'strict', PLATFORM_ADMIN_TOKEN: token } })
  const refused = [/Failed to load resource.*40[13]/]
  const logIn = async (page, text) => {
    await page.getByLabel('Token').fill(text)
    await page.getByRole('button', { name: 'Log in' }).click()
  }
  try {
    await test('access: a wrong token is refused, a right one logs in until the user logs out', async () => {
      const t = await open('/ui/settings', { world, allow: refused })
      await t.page.getByRole('heading', { name: 'Log in' }).waitFor()
      assert.deepEqual(await axe(t.page), [])
      await logIn(t.page, 'a token that the server does not know')
      await t.page.getByText('The server does not know this token').waitFor()
      assert.equal(await t.page.evaluate(() => localStorage.getItem('ui.token')), null)
      await logIn(t.page, token)
      await t.page.getByRole('heading', { name: 'Access' }).waitFor()
      await t.page.reload()
      await t.page.getByRole('button', { name: 'Log out' }).click()
      await t.page.getByRole('heading', { name: 'Log in' }).waitFor()
      assert.equal(await t.page.evaluate(() => localStorage.getItem('ui.token')), null)
      await t.page.reload()
      await t.page.getByRole('heading', { name: 'Log in' }).waitFor()
      noProblems(t)
      await t.close()
    })

    await test('access: a link logs in, and its token is removed from the address', async () => {
      const t = await open(`/ui/settings#token=${token}`, { world })
      await t.page.getByRole('button', { name: 'Log out' }).waitFor()
      assert.equal(new URL(t.page.url()).hash, '')
      noProblems(t)
      await t.close()
    })

    await test('access: a token is created, shown once, used and revoked', async () => {
      const t = await open(`/ui/tokens#token=${token}`, { world, allow: refused })
      await t.page.getByRole('button', { name: 'Create token' }).click()
      const dialog = t.page.getByRole('dialog')
      await dialog.getByRole('textbox', { name: 'Name' }).fill(hostile[0])
      assert.deepEqual(await axe(t.page), [])
      await dialog.getByRole('button', { name: 'Create' }).click()
      const secret = (await dialog.getByText(/^plt_/).innerText()).trim()
      assert.match(secret, /^plt_[a-z2-7]{16}_[a-z2-7]{52}$/)
      assert.deepEqual(await axe(t.page), [])
      await dialog.getByRole('button', { name: 'Done' }).click()
      const row = t.page.getByRole('row', { name: hostile[0] })
      await row.getByText('viewer').waitFor()
      await t.page.reload()
      await row.waitFor()
      assert.ok(!(await t.page.content()).includes(secret), 'the secret is shown again')
      assert.deepEqual(await axe(t.page), [])

      const viewer = await open(`/ui/tokens#token=${secret}`, { world, allow: refused })
      await viewer.page.getByText('It needs the role security').waitFor()
      await row.getByRole('button', { name: /^Revoke/ }).click()
      await dialog.getByRole('button', { name: 'Revoke' }).click()
      await row.waitFor({ state: 'detached' })
      await viewer.page.reload()
      await viewer.page.getByRole('heading', { name: 'Log in' }).waitFor()
      for (const opened of [t, viewer]) noProblems(opened)
      await t.close()
      await viewer.close()
    })

    await test('access: the audit log lists changes and refusals', async () => {
      const viewer = await world.api('/tokens', { method: 'POST', body: { name: 'reads', roles: ['viewer'] } })
      const refusal = await fetch(`${world.admin}/deployments/dp_none`, { method: 'DELETE', headers: { authorization: `Bearer ${viewer.token}` } })
      assert.equal(refusal.status, 403)
      for (const theme of ['light', 'dark']) {
        const t = await open(`/ui/audit#token=${token}`, { world, theme })
        const table = t.page.getByRole('table', { name: 'Audit log' })
        await table.getByRole('row', { name: /POST \/tokens.*done/ }).first().waitFor()
        await table.getByRole('row', { name: /reads.*dp_none.*requires the role/ }).waitFor()
        await t.page.getByRole('button', { name: 'Verify' }).click()
        await t.page.getByText(/The \d+ records are intact/).waitFor()
        assert.deepEqual(await axe(t.page), [])
        noProblems(t)
        await t.close()
      }
    })

    for (const [name, path] of Object.entries({ tokens: '/ui/tokens', audit: '/ui/audit', settings: '/ui/settings' })) {
      await test(`access: page ${name} fits a narrow window`, async () => {
        const t = await open(`${path}#token=${token}`, { world, width: 390, theme: 'dark' })
        await t.settled()
        const outside = await t.page.evaluate(() => {
          const ends = (e) => e.getBoundingClientRect().right
          const panels = [...document.querySelectorAll('main .page-actions, main .panel')].filter((e) => ends(e) > innerWidth)
          const values = [...document.querySelectorAll('main .panel .facts dd > *')].filter((e) => ends(e) > ends(e.closest('.panel')))
          return panels.length + values.length
        })
        assert.equal(outside, 0)
        assert.deepEqual(await axe(t.page), [])
        noProblems(t)
        await t.close()
      })
    }
  } finally {
    await world.stop()
  }
}

try {
  await test('an empty server shows the first steps, and goes on by itself', async () => {
    const t = await open('/')
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
    objects: '/ui/objects', object: '/ui/objects/Cart/book', 'object, hostile': `/ui/objects/Cart/${odd}`, workflow: '/ui/objects/Signup/ada', 'flow control': '/ui/flow-control', cluster: '/ui/cluster', sql: '/ui/sql', jobs: '/ui/jobs', settings: '/ui/settings',
    subscriptions: '/ui/subscriptions', subscription: `/ui/subscriptions/${subscription}`, 'kafka clusters': '/ui/kafka-clusters', 'kafka cluster': '/ui/kafka-clusters/main', bundle: '/ui/bundle',
    'no such page': '/ui/nonsense',
  }
  for (const [name, path] of Object.entries(pages)) {
    for (const theme of ['light', 'dark']) {
      await test(`page ${name}, ${theme}`, async () => {
        const t = await open(path, { theme, width: theme === 'dark' && !long ? 1440 : 1440 })
        await t.page.waitForFunction(() => document.querySelectorAll('.skeleton').length === 0 && (document.querySelector('main')?.textContent.trim() ?? '') !== '')
        assert.equal(await t.page.locator('main .error-box').count(), 0, 'an error is shown')
        const violations = await axe(t.page)
        assert.deepEqual(violations, [])
        const wide = await t.page.evaluate(() => document.documentElement.scrollWidth > innerWidth)
        assert.equal(wide, false, 'the page is wider than the window')
        noProblems(t)
        await t.close()
      })
    }
    if (long) {
      await test(`page ${name}, narrow`, async () => {
        const t = await open(path, { width: 360 })
        await t.page.waitForFunction(() => document.querySelectorAll('.skeleton').length === 0)
        assert.equal(await t.page.evaluate(() => document.getElementById('main').scrollWidth > document.getElementById('main').clientWidth + 1), false, 'the page scrolls sideways')
        noProblems(t)
        await t.close()
      })
    }
  }

  await test('a subscription is paused, resumed and deleted', async () => {
    const extra = (await w.api('/subscriptions', { method: 'POST', body: { source: 'kafka://main/returns', sink: 'service://Cart/add' } })).id
    const t = await open('/ui/subscriptions')
    await t.settled()
    await t.page.getByRole('link', { name: 'kafka://main/returns' }).click()
    await t.page.getByRole('button', { name: 'Pause' }).click()
    await t.page.getByLabel('Reason, for other operators').fill('a deploy')
    await t.page.getByRole('dialog').getByRole('button', { name: 'Pause' }).click()
    await t.page.getByRole('button', { name: 'Resume' }).waitFor()
    assert.equal((await w.api(`/subscriptions/${extra}`)).paused.reason, 'a deploy')
    await t.page.getByText(/a deploy/).first().waitFor()
    await t.page.getByRole('button', { name: 'Resume' }).click()
    await t.page.getByRole('button', { name: 'Pause' }).waitFor()
    await t.page.getByRole('button', { name: 'Delete' }).click()
    await t.page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await t.page.waitForURL(/\/ui\/subscriptions$/)
    await until('the removal', async () => !(await w.api('/subscriptions')).subscriptions.some((s) => s.id === extra))
    await t.page.getByRole('link', { name: 'kafka://main/returns' }).waitFor({ state: 'detached' })
    noProblems(t)
    await t.close()
  })

  await test('a blocked record is shown, retried and skipped', async () => {
    const view = await w.api(`/subscriptions/${subscription}`)
    const t = await open('/ui/settings')
    await t.settled()
    const blocked = { offset: 42, reason: 'key_missing', message: 'the record has no key', key_bytes: 0, value_bytes: 7 }
    const partition = { topic: 'orders', partition: 3, state: 'blocked', reason: 'key_missing', node: 1, owner_partition: 0, position: 42, end_offset: 50, lag_records: 8, lag_seconds: 2.5, in_flight: 0, skipped: 0, dead_lettered: 0, blocked_record: blocked }
    const asked = []
    await t.page.route(`${w.admin}/subscriptions/${subscription}`, (r) => r.fulfill({ json: { ...view, state: 'blocked', topic_partitions: 1, blocked: 1, lag_records: 8, lag_seconds: 2.5, partitions: [partition] } }))
    await t.page.route(`${w.admin}/subscriptions/${subscription}/records/**`, (r) => {
      asked.push(`${r.request().method()} ${new URL(r.request().url()).pathname.split('/records/')[1]}`)
      return r.request().method() === 'GET' ? r.fulfill({ json: { topic: 'orders', partition: 3, offset: 42, key: null, value: { text: '<b>no</b>' }, headers: [{ name: 'x', value: { base64: '/w==' } }], key_bytes: 0, value_bytes: 9 } }) : r.fulfill({ status: 202 })
    })
    await t.page.goto(`${w.admin}/ui/subscriptions/${subscription}`)
    await t.page.getByRole('table', { name: 'Blocked by a record' }).getByText('the record has no key').waitFor()
    await t.page.getByRole('button', { name: 'Show' }).click()
    await t.page.getByRole('dialog').getByText('<b>no</b>').waitFor()
    await t.page.getByRole('button', { name: 'Close' }).click()
    await t.page.getByRole('button', { name: 'Retry' }).click()
    await t.page.getByText('Retrying offset 42 of orders/3').waitFor()
    await t.page.getByRole('button', { name: 'Skip', exact: true }).click()
    await t.page.getByRole('dialog').getByRole('button', { name: 'Skip' }).click()
    await t.page.getByText('Skipped offset 42 of orders/3').waitFor()
    assert.deepEqual(asked, ['GET orders/3/42', 'POST orders/3/42/retry', 'POST orders/3/42/skip'])
    assert.deepEqual(await axe(t.page), [])
    noProblems(t)
    await t.close()
  })

  await test('filters are in the address and survive reload, back and forward', async () => {
    const t = await open('/ui/invocations')
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

  await test('lists go on beyond the first page', async () => {
    const t = await open('/ui/invocations')
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
    const t = await open('/ui/')
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
    const t = await open(`/ui/invocations/${id}`)
    await t.page.getByRole('button', { name: 'Cancel' }).click()
    await t.page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
    await t.page.locator('.inv-head').getByText('Cancelled').waitFor()
    await w.status(id, 'completed')
    noProblems(t)
    await t.close()
  })

  await test('an invocation is paused with a reason, shown, and resumed', async () => {
    const id = await w.send('Orders/flaky', 'pause me')
    await w.status(id, 'backing-off')
    const t = await open(`/ui/invocations/${id}`)
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
    const t = await open('/ui/invocations?key=batch')
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
    const t = await open(`/ui/invocations/${ids.order}`)
    await t.page.getByRole('button', { name: 'Restart as new' }).click()
    await t.page.getByRole('dialog').getByRole('button', { name: 'Restart as new' }).click()
    await t.page.waitForURL((u) => /inv_/.test(u.pathname) && !u.pathname.endsWith(ids.order))
    await t.page.locator('.inv-head').getByText('Succeeded').waitFor()
    noProblems(t)
    await t.close()
  })

  await test('the journal shows steps with payloads, and calls unfold in place', async () => {
    const t = await open(`/ui/invocations/${ids.order}`)
    await t.page.locator('.j-line', { hasText: 'create id' }).click()
    await t.page.locator('.j-detail').getByText('"order-book"').waitFor()
    await t.page.getByText('Unfold calls').click()
    await t.page.locator('.j-note').first().waitFor()
    await t.page.locator('.j-line', { hasText: 'charged 2.00' }).first().waitFor()
    noProblems(t)
    await t.close()
  })

  await test('a long journal renders only what is visible', async () => {
    const t = await open(`/ui/invocations/${ids.steps}`)
    await t.page.locator('.j-row').nth(10).waitFor()
    await t.page.waitForFunction((n) => document.querySelector('.count')?.textContent.replaceAll(',', '') >= String(n), long ? 5000 : 300)
    const rows = await t.page.locator('.j-row').count()
    assert.ok(rows < 120, `${rows} rows are rendered`)
    await t.page.locator('#main').evaluate((m) => m.scrollTo(0, m.scrollHeight))
    await t.page.locator('.j-row.k-output').waitFor()
    noProblems(t)
    await t.close()
  })

  await test('a large payload is read on request', async () => {
    const t = await open(`/ui/invocations/${ids.large}`)
    await t.page.locator('.j-line', { hasText: 'return' }).click()
    await t.page.getByRole('button', { name: /^Show 586/ }).click()
    await t.page.locator('.payload-body').getByText('0123456789abcdef').waitFor()
    noProblems(t)
    await t.close()
  })

  await test('hostile names and payloads are text', async () => {
    const t = await open(`/ui/invocations/${ids.hostile}`)
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
    const t = await open('/ui/services/Orders?invoke=place')
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

  await test('a deployment is checked and registered', async () => {
    const t = await open('/ui/services?register=true')
    await t.page.getByPlaceholder('http://localhost:9080').fill(w.service)
    await t.page.getByRole('button', { name: 'Check' }).click()
    await t.page.locator('.plan').getByText('Cart').waitFor()
    await t.page.getByRole('dialog').getByRole('button', { name: 'Register' }).click()
    await t.page.getByRole('dialog').waitFor({ state: 'detached' })
    noProblems(t)
    await t.close()
  })

  await test('an address without an endpoint is refused with the reason', async () => {
    const t = await open('/ui/services?register=true', { allow: [/Failed to load resource/] })
    await t.page.getByPlaceholder('http://localhost:9080').fill('http://127.0.0.1:1')
    await t.page.getByRole('button', { name: 'Check' }).click()
    await t.page.getByRole('alert').getByText('META0003').waitFor()
    noProblems(t)
    await t.close()
  })

  await test('settings of a service are changed', async () => {
    const t = await open('/ui/services/Payments')
    await t.page.getByRole('button', { name: 'Settings' }).click()
    await t.page.getByLabel('Inactivity timeout').fill('2m')
    await t.page.getByText('1 change').waitFor()
    await t.page.getByRole('button', { name: 'Save' }).click()
    await t.page.getByRole('dialog').waitFor({ state: 'detached' })
    assert.match((await w.api('/services/Payments')).inactivity_timeout, /^2m/)
    noProblems(t)
    await t.close()
  })

  await test('state is edited after a review, and not if it has changed', async () => {
    const t = await open('/ui/objects/Cart/lamp', { allow: [/status of 409/] })
    await t.page.getByRole('button', { name: 'Edit count' }).click()
    await t.page.locator('.cm-content').click()
    await t.page.keyboard.press('Control+a')
    await t.page.keyboard.type('4711')
    await t.page.getByRole('button', { name: 'Review' }).click()
    await t.page.locator('.diff .add').getByText('4711').waitFor()
    await t.page.getByRole('button', { name: 'Save' }).click()
    await t.page.getByRole('dialog').waitFor({ state: 'detached' })
    await t.page.locator('.state-preview').getByText('4711').waitFor()
    await t.page.getByRole('button', { name: 'Edit count' }).click()
    await t.page.locator('.cm-content').click()
    await t.page.keyboard.press('Control+a')
    await t.page.keyboard.type('1')
    await w.call('Cart/lamp/add', { item: 'x', amount: 1 })
    await t.page.getByRole('button', { name: 'Review' }).click()
    await t.page.getByRole('button', { name: 'Save' }).click()
    await t.page.getByRole('alert').getByText('nothing was changed').waitFor()
    assert.equal((await w.call('Cart/lamp/get')).text, '4712')
    noProblems(t)
    await t.close()
  })

  await test('a query runs, links ids, and shows its error', async () => {
    const t = await open('/ui/sql?query=' + encodeURIComponent("SELECT id, status FROM sys_invocation WHERE status = 'paused'"), { allow: [/status of 400/] })
    await t.page.locator('.grid-result a').getByText(ids.paused).waitFor()
    await t.page.locator('.cm-content').click()
    await t.page.keyboard.press('Control+a')
    await t.page.keyboard.type('SELECT nonsense FROM sys_invocation')
    await t.page.keyboard.press('Control+Enter')
    await t.page.getByRole('alert').getByText('nonsense').waitFor()
    noProblems(t)
    await t.close()
  })

  await test('an exported invocation opens from its file', async () => {
    const t = await open(`/ui/invocations/${ids.order}`)
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

  await test('a restart of the server shows a notice, and the page goes on', async () => {
    const t = await open('/ui/cluster', { allow: [/ERR_/, /Failed to load resource/] })
    await t.page.getByRole('heading', { name: 'n1' }).waitFor()
    await w.stopServer()
    await t.page.locator('.stale').first().waitFor()
    await t.page.getByRole('heading', { name: 'n1' }).waitFor()
    await w.startServer()
    await t.page.waitForFunction(() => document.querySelectorAll('.stale').length === 0)
    noProblems(t)
    await t.close()
  })
  await testAccess()
} finally {
  await b.close()
  await w.stop()
}
console.log(`${passed} passed, ${failed} failed`)
process.exitCode = failed === 0 && passed > 0 ? 0 : 1
