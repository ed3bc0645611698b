// Tests of awakeables: what waits for them, and their completion.

import assert from 'node:assert/strict'
import { axe, noProblems, open, test } from './lib.mjs'

export async function testAwakeables(w) {
  await test('awakeables are found, resolved and rejected', async () => {
    const ids = []
    for (let i = 0; i < 3; i++) {
      ids.push(await w.send('Orders/approve', `contract ${i}`))
      await w.status(ids[i], 'suspended')
    }
    const of = async (i) => (await w.api('/awakeables?handler=approve')).awakeables.find((a) => a.invocation_id === ids[i]).id
    const [first, second, third] = await Promise.all(ids.map((_, i) => of(i)))
    const t = await open(w, '/ui/invocations')
    await t.page.getByRole('link', { name: 'Awakeables' }).click()
    await t.page.getByLabel('Service').selectOption('Orders')
    await t.page.getByLabel('Handler').selectOption('approve')
    const rows = t.page.getByRole('table', { name: 'Awakeables' }).locator('tbody tr')
    await rows.nth(2).waitFor()
    assert.deepEqual(await rows.locator('.c-target a').evaluateAll((all) => all.map((e) => e.pathname.split('/').at(-1))), ids, 'the longest waiting first')
    assert.deepEqual(await axe(t.page), [])
    await rows.nth(0).getByRole('button', { name: 'Resolve' }).click()
    const dialog = t.page.getByRole('dialog')
    await dialog.getByText('Orders/approve').waitFor()
    await dialog.locator('.cm-editor.cm-focused').waitFor()
    await t.page.keyboard.type('yes')
    await dialog.getByText('This is not valid JSON').waitFor()
    assert.ok(await dialog.getByRole('button', { name: 'Resolve awakeable' }).isDisabled())
    assert.deepEqual(await axe(t.page), [])
    await dialog.locator('.cm-lintRange-error, .cm-lintPoint').waitFor({ state: 'attached' })
    await t.page.keyboard.press('Control+a')
    await t.page.keyboard.press('Delete')
    await dialog.getByText('Empty: no value').waitFor()
    await dialog.locator('.cm-lintRange-error, .cm-lintPoint').waitFor({ state: 'detached' })
    await t.page.keyboard.press('Tab')
    await dialog.locator('.cm-editor:not(.cm-focused)').waitFor()
    await t.page.keyboard.press('Shift+Tab')
    await t.page.keyboard.type('"yes"')
    await dialog.getByText(`platform awakeables resolve ${first} '"yes"'`).waitFor()
    await dialog.getByRole('button', { name: 'Resolve awakeable' }).click()
    await dialog.waitFor({ state: 'detached' })
    await w.status(ids[0], 'completed')
    await t.page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 2)
    assert.equal((await (await fetch(`${w.ingress}/platform/invocation/${ids[0]}/output`)).text()), '"yes"')

    await t.page.getByLabel('Awakeable id, invocation id or key').fill(second)
    await t.page.keyboard.press('Enter')
    await t.page.waitForURL((url) => url.searchParams.get('id') === second)
    await t.page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 1)
    await t.page.getByRole('button', { name: 'Reject' }).click()
    await dialog.getByLabel('Reason').fill('not affordable')
    await dialog.getByRole('button', { name: 'Reject awakeable' }).click()
    await w.status(ids[1], 'completed')
    await t.page.getByText('Nothing waits for this awakeable').waitFor()
    assert.match((await w.api(`/invocations/${ids[1]}`)).completion_failure, /not affordable/)
    await t.page.goBack()
    await t.page.waitForURL(/handler=approve/)

    await t.page.goto(`${w.admin}/ui/invocations/${ids[2]}`)
    await t.page.getByRole('button', { name: 'Resolve' }).click()
    await dialog.getByText('Orders/approve').waitFor()
    await w.call(`platform/awakeables/${third}/resolve`, 'from elsewhere')
    await dialog.getByText('Nothing waits for it').waitFor()
    assert.ok(await dialog.getByRole('button', { name: 'Resolve awakeable' }).isDisabled())
    noProblems(t)
    await t.close()
  })

  await test('an id of an awakeable is found by the search', async () => {
    const id = await w.send('Orders/approve', 'search')
    await w.status(id, 'suspended')
    const { awakeables } = await w.api('/awakeables?service=Orders&handler=approve')
    const t = await open(w, '/ui/')
    await t.settled()
    await t.page.keyboard.press('/')
    await t.page.getByRole('combobox').fill(awakeables[0].id)
    await t.page.keyboard.press('Enter')
    await t.page.getByRole('table', { name: 'Awakeables' }).getByTitle(awakeables[0].id).waitFor()
    noProblems(t)
    await t.close()
  })
}
