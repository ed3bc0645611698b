// Tests of a server that requires tokens.

import assert from 'node:assert/strict'
import { axe, noProblems, open, test } from './lib.mjs'
import { World, hostile } from './world.mjs'

export async function testAccess() {
  const token = 'administrator-of-a-test-0123456789'
  const world = await World.start({ token, env: { PLATFORM_SECURITY__MODE: 'strict', PLATFORM_ADMIN_TOKEN: token } })
  const refused = [/Failed to load resource.*40[13]/]
  const logIn = async (page, text) => {
    await page.getByLabel('Token').fill(text)
    await page.getByRole('button', { name: 'Log in' }).click()
  }
  try {
    await test('access: a wrong token is refused, a right one logs in until the user logs out', async () => {
      const t = await open(world, '/ui/settings', { allow: refused })
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
      const t = await open(world, `/ui/settings#token=${token}`)
      await t.page.getByRole('button', { name: 'Log out' }).waitFor()
      assert.equal(new URL(t.page.url()).hash, '')
      noProblems(t)
      await t.close()
    })

    await test('access: a token is created, shown once, used and revoked', async () => {
      const t = await open(world, `/ui/tokens#token=${token}`, { allow: refused })
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

      const viewer = await open(world, `/ui/tokens#token=${secret}`, { allow: refused })
      await viewer.page.getByText('It needs the role security').waitFor()
      await row.getByRole('button', { name: /^Revoke/ }).click()
      await dialog.getByRole('button', { name: 'Revoke' }).click()
      await row.waitFor({ state: 'detached' })
      // Its event stream ends, and the page asks for another token by itself.
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
        const t = await open(world, `/ui/audit#token=${token}`, { theme })
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

    await test('access: what a viewer may not do is disabled, with the reason', async () => {
      await world.register()
      await world.api('/kafka-clusters', { method: 'POST', body: { name: 'main', properties: { 'bootstrap.servers': '127.0.0.1:1' } } })
      const subscription = (await world.api('/subscriptions', { method: 'POST', body: { source: 'kafka://main/orders', sink: 'service://Cart/add' } })).id
      const invocation = await world.send('Orders/wait', '2h')
      await world.call('Cart/book/add', { item: 'pen', amount: 1 })
      const deployment = (await world.api('/deployments')).deployments[0].id
      const { token: secret } = await world.api('/tokens', { method: 'POST', body: { name: 'looks', roles: ['viewer'] } })
      const buttons = {
        '/ui/': ['Register deployment'], '/ui/services': ['Register deployment'], '/ui/services/Cart': ['Settings'], [`/ui/deployments/${deployment}`]: ['Update address', 'Remove'],
        [`/ui/invocations/${invocation}`]: ['Cancel'], [`/ui/subscriptions/${subscription}`]: ['Pause', 'Seek', 'Edit', 'Delete'], '/ui/kafka-clusters/main': ['Create subscription', 'Edit', 'Delete'], '/ui/cluster': ['Configuration'],
      }
      const t = await open(world, `/ui/settings#token=${secret}`)
      await t.page.getByRole('button', { name: 'Log out' }).waitFor()
      for (const [path, names] of Object.entries(buttons)) {
        await t.page.goto(world.admin + path)
        await t.settled()
        for (const name of names) {
          const button = t.page.getByRole('button', { name, exact: true }).first()
          await t.page.waitForFunction((b) => b.getAttribute('aria-disabled') === 'true', await button.elementHandle())
          assert.match(await button.getAttribute('title'), /It needs the role (deployer|operator|admin)\.$/)
          await button.focus()
          await t.page.keyboard.press('Enter')
          assert.equal(await t.page.getByRole('dialog').count(), 0, `${name} of ${path} opens a dialog`)
        }
        assert.deepEqual(await axe(t.page), [])
      }
      // Neither is a dialog opened by a link of the search.
      await t.page.goto(`${world.admin}/ui/services?register=true`)
      await t.page.locator('.toast').getByText('It needs the role deployer').waitFor()
      assert.equal(await t.page.getByRole('dialog').count(), 0)
      await t.page.keyboard.press('/')
      await t.page.keyboard.type('theme')
      await t.page.getByRole('dialog').getByText('Dark theme').waitFor()
      await t.page.keyboard.press('ControlOrMeta+a')
      await t.page.keyboard.type('register a dep')
      await t.page.getByRole('dialog').getByText('Find the key').waitFor()
      assert.equal(await t.page.getByRole('dialog').getByText('Register a deployment').count(), 0)
      // Calls need credentials of their own, until they are given.
      await t.page.goto(`${world.admin}/ui/services/Orders?invoke=wait`)
      const note = t.page.getByText('Callers need a token with the role invoker')
      await note.waitFor()
      await t.page.getByText('Options', { exact: true }).click()
      await t.page.getByLabel('Headers').fill(`authorization: Bearer ${token}`)
      await note.waitFor({ state: 'detached' })
      const { entries } = await (await fetch(`${world.admin}/invocations/${invocation}/journal`, { headers: { authorization: `Bearer ${secret}` } })).json()
      assert.equal(entries[0].entry_type, 'Command: Input')
      assert.equal(entries[0].content, undefined)
      await t.page.goto(`${world.admin}/ui/objects/Cart/book`)
      await t.page.getByText('It needs the role reader').waitFor()
      noProblems(t)
      await t.close()
    })

    await test('access: a user who may not read anything sees why, instead of failed requests', async () => {
      const { token: secret } = await world.api('/tokens', { method: 'POST', body: { name: 'completes', roles: ['callback'] } })
      const t = await open(world, `/ui/settings#token=${secret}`, { allow: refused })
      await t.page.getByRole('button', { name: 'Log out' }).waitFor()
      await t.page.getByText('completes').first().waitFor()
      for (const path of ['/ui/', '/ui/objects', '/ui/services']) {
        await t.page.goto(world.admin + path)
        await t.page.getByText('Your token “completes” does not permit this. It needs the role viewer.').waitFor()
        assert.equal(await t.page.getByText('The server does not respond').count(), 0)
        assert.equal(await t.page.getByRole('button', { name: 'Retry' }).count(), 0)
      }
      assert.deepEqual(await axe(t.page), [])
      noProblems(t)
      await t.close()
    })

    await test('access: the page of the own access lists permissions, missing roles and limits', async () => {
      const { token: secret } = await world.api('/tokens', { method: 'POST', body: { name: 'helps', roles: ['operator'], services: ['Orders'] } })
      for (const theme of ['light', 'dark']) {
        const t = await open(world, `/ui/access#token=${secret}`, { theme, width: theme === 'dark' ? 390 : 1440, allow: refused })
        const row = (name) => t.page.getByRole('row', { name: new RegExp(`^${name} `) })
        await row('operate').getByText('permitted').waitFor()
        await row('payloads').getByText('needs the role reader').waitFor()
        await row('secure').getByText('needs the role security').waitFor()
        await t.page.getByText('All of this applies to Orders only').waitFor()
        await t.page.locator('.topbar .health').waitFor({ state: 'detached' }) // not for limited tokens
        assert.deepEqual(await axe(t.page), [])
        noProblems(t)
        await t.close()
      }
    })

    await test('access: the overview of a limited token reads nothing of the whole cluster, and notices an outage', async () => {
      const { token: secret } = await world.api('/tokens', { method: 'POST', body: { name: 'part', roles: ['operator'], services: ['Orders'] } })
      await world.register()
      const t = await open(world, `/ui/#token=${secret}`, { allow: [...refused, /ERR_/] })
      await t.page.getByRole('table', { name: 'Services' }).getByRole('link', { name: 'Orders' }).waitFor()
      assert.equal(await t.page.locator('.error-box').count(), 0)
      assert.equal(await t.page.getByRole('heading', { name: 'Deployments' }).count(), 0)
      await world.stopServer()
      await t.page.getByText('The server does not respond').waitFor({ timeout: 20_000 })
      await world.startServer()
      await t.page.getByText('The server does not respond').waitFor({ state: 'detached' })
      noProblems(t)
      await t.close()
    })

    await test('access: the audit log goes to older records and back to the newest', async () => {
      for (let i = 0; i < 110; i++) await world.api('/tokens', { method: 'POST', body: { name: `t${i}`, roles: ['viewer'] } })
      const t = await open(world, `/ui/audit#token=${token}`)
      await t.page.getByRole('button', { name: 'Older' }).click()
      await t.page.waitForURL(/before=\d+/)
      await t.page.getByText(/^Records before number/).waitFor()
      await t.page.getByRole('button', { name: 'Newest' }).click()
      await t.page.getByText('Newest records').waitFor()
      noProblems(t)
      await t.close()
    })

    for (const [name, path] of Object.entries({ tokens: '/ui/tokens', audit: '/ui/audit', access: '/ui/access', settings: '/ui/settings' })) {
      await test(`access: page ${name} fits a narrow window`, async () => {
        const t = await open(world, `${path}#token=${token}`, { width: 390, theme: 'dark' })
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
