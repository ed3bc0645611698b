// Tests of what operators do under stress, and of what disturbs pages: double clicks, responses out of order, wrong
// clocks, logins that end, several tabs, and storage of the browser that is not ours.

import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { axe, noProblems, open, test } from './lib.mjs'
import { World, freePorts, hostile, until } from './world.mjs'

/** Holds requests until they are released; counts those that arrive. */
async function hold(page, url, method) {
  const held = []
  const got = { count: 0, release: async () => { for (const r of held.splice(0)) await r.continue().catch(() => undefined) } }
  await page.route(url, async (route) => {
    if (route.request().method() !== method) return route.continue()
    got.count++
    held.push(route)
  })
  return got
}

export async function testStress(w) {
  await test('stress: the first key leads to the content', async () => {
    const t = await open(w, '/ui/invocations')
    await t.settled()
    await t.page.keyboard.press('Tab')
    await t.page.getByRole('link', { name: 'Skip to content' }).waitFor()
    await t.page.keyboard.press('Enter')
    await t.page.waitForFunction(() => document.activeElement?.id === 'main')
    assert.equal(new URL(t.page.url()).hash, '')
    noProblems(t)
    await t.close()
  })

  await test('stress: a menu is left with the keyboard', async () => {
    const t = await open(w, '/ui/sql')
    await t.settled()
    const button = t.page.getByRole('button', { name: 'Samples' })
    await button.focus()
    await t.page.keyboard.press('Enter')
    const menu = t.page.getByRole('menu')
    await menu.waitFor()
    for (let i = await menu.getByRole('menuitem').count(); i > 0; i--) await t.page.keyboard.press('Tab')
    await menu.waitFor({ state: 'detached' })
    await button.focus()
    await t.page.keyboard.press('Enter')
    await menu.waitFor()
    await t.page.keyboard.press('Escape')
    await menu.waitFor({ state: 'detached' })
    assert.equal(await button.evaluate((b) => b === document.activeElement), true)
    noProblems(t)
    await t.close()
  })

  await test('stress: pages start at their top, and back returns to where a list was left', async () => {
    const t = await open(w, '/ui/invocations')
    const top = () => t.page.locator('#main').evaluate((m) => m.scrollTop)
    await t.page.locator('tbody tr').nth(60).waitFor()
    await t.page.locator('#main').evaluate((m) => m.scrollTo(0, 900))
    await t.page.locator('tbody tr').nth(40).getByRole('link').first().click()
    await t.page.locator('.inv-head').waitFor()
    assert.equal(await top(), 0)
    await t.page.goBack()
    await until('the position in the list', async () => Math.abs(await top() - 900) < 5, 10_000)
    noProblems(t)
    await t.close()
  })

  await test('stress: a link to a later page of a list has no way back to another site', async () => {
    const { next_cursor: cursor } = await w.api('/invocations?limit=5')
    const t = await open(w, `/ui/invocations?cursor=${encodeURIComponent(cursor)}`)
    await t.page.getByRole('button', { name: 'First', exact: true }).waitFor()
    assert.equal(await t.page.getByRole('button', { name: 'Previous' }).count(), 0)
    await t.page.getByRole('button', { name: 'First', exact: true }).click()
    await t.page.waitForURL((u) => !u.searchParams.has('cursor'))
    noProblems(t)
    await t.close()
  })

  await test('stress: a double click sends a change once', async () => {
    const id = await w.send('Orders/flaky', 'twice')
    await w.status(id, 'backing-off')
    const t = await open(w, `/ui/invocations/${id}`)
    const dialog = t.page.getByRole('dialog')
    for (const [action, item] of [['pause', 'Pause'], ['kill', 'Kill']]) {
      const sent = await hold(t.page, `**/invocations/${id}/${action}*`, 'PATCH')
      await t.page.getByRole('button', { name: 'More actions' }).click()
      await t.page.getByRole('menuitem', { name: item }).click()
      await dialog.getByRole('button', { name: item }).dblclick()
      await dialog.getByRole('button', { name: 'Working…' }).waitFor()
      await t.page.keyboard.press('Enter')
      await sent.release()
      await dialog.waitFor({ state: 'detached' })
      assert.equal(sent.count, 1, action)
    }
    await w.status(id, 'completed')
    noProblems(t)
    await t.close()
  })

  await test('stress: an older answer does not replace a newer one', async () => {
    const t = await open(w, '/ui/invocations')
    await t.settled()
    const late = []
    await t.page.route(/\/invocations\?.*status=scheduled/, (route) => { late.push(route) })
    await t.page.getByRole('button', { name: /^Scheduled/ }).click()
    await until('the older request', () => late.length > 0)
    await t.page.getByRole('link', { name: 'Completed' }).click()
    await t.page.locator('tbody').getByText('Succeeded').first().waitFor()
    const [row] = (await w.api('/invocations?limit=1')).invocations
    for (const route of late) await route.fulfill({ json: { invocations: [{ ...row, id: 'inv_1older', status: 'scheduled' }] } }).catch(() => undefined)
    await t.page.getByRole('button', { name: /^Live/ }).click() // an update of the page is drawn later
    await t.page.getByRole('button', { name: /^Paused$/ }).last().waitFor()
    assert.equal(await t.page.locator('tbody').getByText('inv_1older').count(), 0)
    noProblems(t)
    await t.close()
  })

  await test('stress: the address that is being checked cannot be replaced by another', async () => {
    const t = await open(w, '/ui/services?register=true')
    const dialog = t.page.getByRole('dialog')
    const sent = await hold(t.page, '**/deployments', 'POST')
    const address = dialog.getByPlaceholder('http://localhost:9080')
    await address.fill(w.service)
    await dialog.getByText('Options', { exact: true }).click()
    await dialog.getByLabel('Additional headers').fill('authorization Bearer')
    await dialog.getByRole('button', { name: 'Check' }).click()
    await dialog.getByText('Line 1 of the headers is not of the form name: value.').waitFor()
    assert.equal(sent.count, 0)
    await dialog.getByLabel('Additional headers').fill('authorization: Basic a:b')
    await dialog.getByRole('button', { name: 'Check' }).click()
    await until('the request', () => sent.count === 1)
    assert.equal(await address.isDisabled(), true)
    await sent.release()
    await dialog.locator('.plan').waitFor()
    assert.deepEqual(await axe(t.page), [])
    noProblems(t)
    await t.close()
  })

  await test('stress: times are right although the clock of the browser is not', async () => {
    const id = await w.send('Orders/wait', '2h')
    await w.status(id, 'suspended')
    const t = await open(w, '/ui/settings')
    await t.page.addInitScript(() => {
      const real = Date.now
      Date.now = () => real() + 5 * 3_600_000
    })
    await t.page.goto(`${w.admin}/ui/invocations/${id}`)
    await t.page.locator('.lifeline').getByText(/^(now|just now|\d+(\.\d+)?s ago)$/).first().waitFor()
    await t.page.locator('.why').getByText(/in 1h 59m/).first().waitFor()
    await w.api(`/invocations/${id}/kill`, { method: 'PATCH' })
    noProblems(t)
    await t.close()
  })

  await test('stress: what the browser has stored is not trusted', async () => {
    const t = await open(w, '/ui/settings')
    await t.page.evaluate(() => {
      for (const [name, value] of Object.entries({ columns: '5', views: '{"a":1}', visits: 'null', queries: '"x"', theme: '[]', zone: 'nonsense', 'query-runs': '7' })) localStorage.setItem(`ui.${name}`, value)
    })
    const lists = () => {
      for (const name of ['columns', 'views', 'visits', 'queries', 'query-runs']) localStorage.setItem(`ui.${name}`, '[null,5,{"name":1},["x"]]')
    }
    for (const path of ['/ui/invocations', '/ui/sql', '/ui/', '', '/ui/invocations', '/ui/sql', '/ui/']) {
      if (path === '') {
        await t.page.evaluate(lists)
        continue
      }
      await t.page.goto(w.admin + path)
      await t.settled()
      assert.equal(await t.page.locator('.error-box').count(), 0, path)
    }
    await t.page.keyboard.press('/')
    await t.page.getByRole('option').first().waitFor()
    noProblems(t)
    await t.close()
  })

  await test('stress: a view that is saved in one tab is there in the other, and none is lost', async () => {
    const t = await open(w, '/ui/invocations?service=Cart')
    const other = await t.page.context().newPage()
    await other.goto(`${w.admin}/ui/invocations?service=Orders`)
    for (const [page, name] of [[t.page, 'carts'], [other, 'orders $& <b>']]) {
      await page.getByRole('button', { name: 'Save view' }).click()
      await page.getByRole('dialog').getByLabel('Name').fill(name)
      await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
    }
    for (const page of [t.page, other]) for (const name of ['carts', 'orders $& <b>']) await page.getByRole('link', { name, exact: true }).waitFor()
    noProblems(t)
    await t.close()
  })

  await test('stress: numbers keep their digits when an entry of state is edited', async () => {
    const key = `${hostile[0]}$&%2F\n2`
    const before = '{"id":12345678901234567890,"price":1.10,"name":"$&"}'
    const { version } = await w.api(`/services/Cart/state?object_key=${encodeURIComponent(key)}`)
    await w.api('/services/Cart/state?wait=true', { method: 'POST', body: { object_key: key, version, new_state: { order: before } } })
    const t = await open(w, `/ui/objects/Cart/${encodeURIComponent(key)}`)
    await t.page.getByText('12345678901234567890').first().waitFor()
    await t.page.getByRole('button', { name: 'Edit order' }).click()
    const dialog = t.page.getByRole('dialog')
    const editor = dialog.locator('.cm-content')
    await editor.getByText('12345678901234567890').waitFor()
    const text = before.replace('"$&"', () => '"changed $&"')
    await editor.click()
    await t.page.keyboard.press('ControlOrMeta+a')
    await t.page.keyboard.insertText(text)
    await dialog.getByRole('button', { name: 'Review' }).click()
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.waitFor({ state: 'detached' })
    const { state } = await w.api(`/services/Cart/state?object_key=${encodeURIComponent(key)}`)
    assert.equal(state[0].value_utf8, text)
    noProblems(t)
    await t.close()
  })

  await test('stress: a payload of ten megabytes is shown in part and saved whole', async () => {
    const id = await w.send('Orders/large', 10_000_000)
    await w.status(id, 'completed')
    const t = await open(w, `/ui/invocations/${id}`, )
    await t.page.locator('.j-line', { hasText: 'return' }).click()
    const saved = async (button) => {
      const [download] = await Promise.all([t.page.waitForEvent('download'), button.click()])
      const { length } = await readFile(await download.path())
      return length
    }
    const whole = await saved(t.page.getByRole('button', { name: 'Download', exact: true }))
    assert.ok(whole >= 10_000_000, `${whole} bytes were saved`)
    await t.page.getByRole('button', { name: /^Show 9.5 MiB/ }).click()
    await t.page.getByText('The first 64 KiB of 9.5 MiB').waitFor()
    await t.page.getByRole('button', { name: 'Show more' }).click()
    await t.page.getByText('The first 4.0 MiB of 9.5 MiB').waitFor()
    assert.equal(await saved(t.page.getByRole('button', { name: 'Download payload' })), whole)
    noProblems(t)
    await t.close()
  })

  await test('stress: resuming a failure group of an old deployment proposes the latest', async () => {
    const [port] = await freePorts(1)
    const uri = `http://127.0.0.1:${port}`
    const old = w.run(process.env.UI_SERVICE, ['-listen', `127.0.0.1:${port}`], process.env)
    const made = await until('the registration', () => w.api('/deployments', { method: 'POST', body: { uri } }))
    const id = await w.send('Orders/wait', '3s')
    await until('its attempt', async () => (await w.api(`/invocations/${id}`)).pinned_deployment_id === made.id)
    old.kill('SIGKILL')
    await w.status(id, 'backing-off')
    const group = await until('its group', async () => (await w.api('/failures?muted=false')).groups.find((g) => g.deployments?.includes(made.id) && /refused/.test(g.message)))
    const t = await open(w, `/ui/failures/${group.id}`, { allow: [/status of 404/] })
    const dialog = t.page.getByRole('dialog')
    const proposal = async () => {
      await t.page.getByRole('button', { name: 'Resume all' }).click()
      await dialog.getByLabel('Deployment').locator('option[value^=dp_]').first().waitFor({ state: 'attached' })
      return dialog.getByLabel('Deployment').evaluate((s) => s.selectedOptions[0].textContent)
    }
    await t.page.getByText('To fix it:').waitFor()
    assert.equal(await proposal(), 'keep the one it started on')
    await t.page.keyboard.press('Escape')
    await w.api('/deployments', { method: 'POST', body: { uri: w.service, force: true } })
    await t.page.getByText('A newer deployment serves Orders.').waitFor()
    assert.equal(await proposal(), 'latest')
    await dialog.getByRole('button', { name: /^Resume/ }).click()
    await w.status(id, 'completed')
    await w.api(`/deployments/${made.id}?force=true`, { method: 'DELETE' })
    noProblems(t)
    await t.close()
  })
}

/** Tests of logins, in which tokens end while a page is open. */
export async function testStressedLogin() {
  const token = 'administrator-of-a-test-0123456789'
  const w = await World.start({ token, env: { PLATFORM_SECURITY__MODE: 'strict', PLATFORM_ADMIN_TOKEN: token } })
  const refused = [/Failed to load resource.*40[13]/]
  const logIn = async (page, text) => {
    await page.locator('.login input').fill(text)
    await page.getByRole('button', { name: 'Log in' }).click()
  }
  try {
    await w.register()
    await test('stress: a login that ends in the middle of an action is renewed without losing the action', async () => {
      const id = await w.send('Orders/wait', '2h')
      await w.status(id, 'suspended')
      const made = await w.api('/tokens', { method: 'POST', body: { name: 'ends soon', roles: ['operator'] } })
      const t = await open(w, `/ui/invocations/${id}#token=${made.token}`, { allow: refused })
      await t.page.getByRole('button', { name: 'More actions' }).click()
      await t.page.getByRole('menuitem', { name: 'Pause' }).click()
      const dialog = t.page.getByRole('dialog', { name: 'Pause' })
      await dialog.getByLabel('Reason').fill('while the login ends')
      await w.api(`/tokens/${made.id}`, { method: 'DELETE' })
      await t.page.getByRole('heading', { name: 'Log in' }).waitFor()
      assert.deepEqual(await axe(t.page), [])
      assert.equal(await dialog.isVisible(), false)
      const again = await w.api('/tokens', { method: 'POST', body: { name: 'ends soon', roles: ['operator'] } })
      await logIn(t.page, again.token)
      await dialog.waitFor()
      assert.equal(await dialog.getByLabel('Reason').inputValue(), 'while the login ends')
      await dialog.getByRole('button', { name: 'Pause' }).click()
      await w.status(id, 'paused')
      noProblems(t)
      await t.close()
    })

    await test('stress: a login of another user shows nothing that the one before has opened', async () => {
      const made = await w.api('/tokens', { method: 'POST', body: { name: 'first', roles: ['admin'] } })
      const next = await w.api('/tokens', { method: 'POST', body: { name: 'second', roles: ['viewer'] } })
      const t = await open(w, `/ui/flow-control#token=${made.token}`, { allow: refused })
      await t.settled()
      await t.page.goto(`${w.admin}/ui/tokens`)
      await t.page.getByRole('button', { name: 'Create token' }).click()
      await t.page.getByRole('dialog').getByRole('textbox', { name: 'Name' }).fill('secret plan')
      await w.api(`/tokens/${made.id}`, { method: 'DELETE' })
      await t.page.getByRole('heading', { name: 'Log in' }).waitFor()
      await logIn(t.page, next.token)
      await t.page.getByText('It needs the role security').waitFor()
      assert.equal(await t.page.locator('dialog').count(), 0)
      assert.equal(await t.page.locator('tbody').count(), 0)
      noProblems(t)
      await t.close()
    })

    await test('stress: a logout in one tab is one in the other, and a login too', async () => {
      const t = await open(w, `/ui/settings#token=${token}`, { allow: refused })
      await t.page.getByRole('button', { name: 'Log out' }).waitFor()
      const other = await t.page.context().newPage()
      await other.goto(`${w.admin}/ui/invocations`)
      await other.locator('h1', { hasText: 'Invocations' }).waitFor()
      await t.page.getByRole('button', { name: 'Log out' }).click()
      await other.getByRole('heading', { name: 'Log in' }).waitFor()
      await t.page.getByRole('heading', { name: 'Log in' }).waitFor()
      await logIn(t.page, token)
      await other.locator('h1', { hasText: 'Invocations' }).waitFor()
      noProblems(t)
      await t.close()
    })

    await test('stress: a token is created once by a double click', async () => {
      const t = await open(w, `/ui/tokens#token=${token}`)
      await t.page.getByRole('button', { name: 'Create token' }).click()
      const dialog = t.page.getByRole('dialog')
      await dialog.getByRole('textbox', { name: 'Name' }).fill('once')
      const sent = await hold(t.page, '**/tokens', 'POST')
      await dialog.getByRole('button', { name: 'Create' }).dblclick()
      await t.page.keyboard.press('Enter')
      await until('the request', () => sent.count > 0)
      await sent.release()
      await dialog.getByText(/^plt_/).waitFor()
      assert.equal((await w.api('/tokens')).tokens.filter((o) => o.name === 'once').length, 1)
      noProblems(t)
      await t.close()
    })

    await test('stress: a permission that is lost in the middle of an action is explained', async () => {
      const id = await w.send('Orders/wait', '2h')
      await w.status(id, 'suspended')
      const t = await open(w, `/ui/invocations/${id}#token=${token}`, { allow: refused })
      await t.page.getByRole('button', { name: 'Cancel' }).click()
      const viewer = await w.api('/tokens', { method: 'POST', body: { name: 'looks', roles: ['viewer'] } })
      // As if the roles of the user had been changed since the page was read.
      await t.page.route(`**/invocations/${id}/cancel`, (route) => route.continue({ headers: { ...route.request().headers(), authorization: `Bearer ${viewer.token}` } }))
      await t.page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
      await t.page.getByRole('dialog').getByRole('alert').getByText(/requires the role/).waitFor()
      assert.equal((await w.api(`/invocations/${id}`)).status, 'suspended')
      noProblems(t)
      await t.close()
    })
  } finally {
    await w.stop()
  }
}
