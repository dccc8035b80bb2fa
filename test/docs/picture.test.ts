/** The README's picture of the storefront. `UPDATE_DOCS=1` retakes it. */
import { expect, test } from "@jest/globals";
import { describeWithBrowser, startBrowser, STARTING_MS } from "../browser/browser.js";
import { FakeClock } from "../support/fake-clock.js";
import { startService } from "../support/service.js";
import { ROOT, UPDATES } from "./support/markdown.js";

const PICTURE = `${ROOT}docs/storefront.png`;
describeWithBrowser("the storefront", () => {
  test(
    "shows what is in the picture: a search with a name in the cart",
    async () => {
      const service = await startService({ clock: new FakeClock() });
      const browser = await startBrowser();
      try {
        const page = await browser.newPage({ viewport: { width: 620, height: 640 }, locale: "en" });
        await page.goto(`${service.url}/?lang=en`);
        await page.locator("#query").fill("kabul");
        await page.keyboard.press("Enter");
        await page.locator('#search-status[data-kind="done"]').waitFor();
        await page.locator('.name[data-domain="kabul.af"] button').click();
        for (const tld of ["af", "com.af", "net.af", "org.af"])
          expect(await page.locator(`.name[data-domain="kabul.${tld}"]`).count()).toBe(1);
        if (UPDATES) await page.screenshot({ path: PICTURE });
      } finally {
        await browser.close();
        await service.close();
      }
    },
    STARTING_MS,
  );
});
