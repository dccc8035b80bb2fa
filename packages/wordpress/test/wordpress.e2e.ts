/** The plugin in a real WordPress, in a real browser, with the real service: `npm run test:wordpress`. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import type { Browser, Locator, Page } from "playwright-core";
import { z } from "zod";
import { DESKTOP, startBrowser } from "../../../test/browser/browser.js";
import { freePort } from "../../../test/support/free-port.js";
import { type ServiceProcess, spawnService } from "../../../test/support/service-process.js";
import { ADMINISTRATOR, type Site, startSite } from "./site.js";

const SETTINGS = "/wp-admin/options-general.php?page=af-domain-search";

/** A checkout as a reseller would write it, as a shortcode. */
const OWN_CHECKOUT = `add_shortcode('own_checkout', function () {
  $promise = af_domain_search_verify_promise(sanitize_text_field(wp_unslash($_POST['promise'] ?? '')));
  if (is_wp_error($promise)) return '<p role="alert">' . esc_html($promise->get_error_message()) . '</p>';
  $lines = '';
  foreach ($promise['lines'] as $line) $lines .= '<li>' . esc_html("{$line['domain']} {$line['price']['amount']} {$line['price']['currency']}") . '</li>';
  return "<ul id='lines'>$lines</ul>";
});`;

describe("a WordPress site", () => {
  let site: Site;
  let service: ServiceProcess;
  let serviceUrl: string;
  let browser: Browser;
  let pages: Page[] = [];

  beforeAll(async () => {
    serviceUrl = `http://127.0.0.1:${await freePort()}`;
    [site, browser, service] = await Promise.all([startSite(), startBrowser(), startService({})]);
    site.mustUse("own-checkout", OWN_CHECKOUT);
  });
  afterEach(async () => {
    for (const page of pages) await page.context().close();
    pages = [];
    expect(site.complaints()).toEqual([]);
  });
  afterAll(async () => {
    await browser.close();
    await service.stop();
    await site.close();
  });

  async function startService(env: Readonly<Record<string, string>>): Promise<ServiceProcess> {
    const started = spawnService({ PORT: new URL(serviceUrl).port, ...env });
    await started.listening;
    return started;
  }

  async function visitor(): Promise<Page> {
    const page = await (await browser.newContext({ ...DESKTOP, baseURL: site.url, locale: "en" })).newPage();
    page.setDefaultTimeout(20_000);
    pages.push(page);
    return page;
  }

  async function userOf(name: string, password: string): Promise<Page> {
    const page = await visitor();
    await page.goto("/wp-login.php");
    // WordPress moves the focus there after a moment.
    await page.locator("#user_login:focus").waitFor();
    await page.keyboard.type(name);
    await page.keyboard.press("Tab");
    await page.keyboard.type(password);
    await page.keyboard.press("Enter");
    await page.locator("#wpadminbar").waitFor();
    return page;
  }

  const administrator = (): Promise<Page> => userOf(ADMINISTRATOR.name, ADMINISTRATOR.password);

  /** What the check of the connection says. */
  async function findings(page: Page): Promise<string[]> {
    await page.goto(SETTINGS);
    await page.getByRole("link", { name: "Check the connection" }).click();
    await page.locator(".notice.inline").first().waitFor();
    return page.locator(".notice.inline").allTextContents();
  }

  /** Saves the settings with this address and returns the sentence that WordPress then shows. */
  async function enter(page: Page, address: string): Promise<string> {
    await page.goto(SETTINGS);
    await page.getByLabel("Address of the service").fill(address);
    await page.getByRole("button", { name: "Save Changes" }).click();
    return (await page.locator(".settings-error").first().textContent()) ?? "";
  }

  /** Searches in the search box on the page, puts the name into the cart, confirms and goes on to the checkout. */
  async function order(page: Page, name: string): Promise<void> {
    const box = page.locator("af-domain-search");
    await search(box, name);
    await box
      .getByRole("button", { name: /add .*to cart/i })
      .first()
      .click();
    await box.getByRole("button", { name: "Confirm the price" }).click();
    await box.getByRole("button", { name: "Go to checkout" }).click();
  }

  async function search(box: Locator, name: string): Promise<void> {
    const field = box.getByRole("searchbox");
    await field.pressSequentially(name);
    await field.press("Enter");
    await box.getByText(name, { exact: true }).first().waitFor();
  }

  test("says nothing to visitors until it is set up, and to administrators where", async () => {
    const address = site.page("Empty", "[af_domain_search]");
    const page = await visitor();
    await page.goto(address);
    expect(await page.locator("body").textContent()).not.toMatch(/af domain search|af_domain_search/);
    const admin = await administrator();
    await admin.goto(address);
    await admin.getByText("Enter the address of the service under Settings").waitFor();
  });

  test("checks the service's address, and what the service doesn't allow yet", async () => {
    const page = await administrator();
    expect(await enter(page, "http://names.example.af")).toContain("must start with https://");
    expect(await page.getByLabel("Address of the service").inputValue()).toBe("");
    expect(await enter(page, `${serviceUrl}/`)).toContain("Settings saved");
    expect(await page.getByLabel("Address of the service").inputValue()).toBe(serviceUrl);
    expect(await findings(page)).toEqual([
      expect.stringMatching(/^The service answers\. Version \d+\.\d+\.\d+, health: pass\.$/),
      `It doesn’t accept searches from this site. Add ${site.url} to its setting CORS_ORIGINS.`,
      "It serves the search box.",
      "It signs confirmed carts.",
    ]);

    await service.stop();
    expect(await findings(page)).toEqual([
      expect.stringContaining("The service can’t be reached at this address"),
    ]);
    service = await startService({ CORS_ORIGINS: site.url });
    expect((await findings(page))[1]).toBe(`It accepts searches from ${site.url}.`);
  });

  test("lets nobody but administrators change or check the settings", async () => {
    site.php(`wp_insert_user(['user_login' => 'editor', 'user_pass' => 'editor', 'role' => 'editor']);`);
    const page = await userOf("editor", "editor");
    await page.goto(SETTINGS);
    expect(await page.locator("body").textContent()).toContain("you are not allowed to access this page");
    const admin = await administrator();
    await admin.goto(`${SETTINGS}&check=1`);
    expect(await admin.locator("body").textContent()).toContain("link you followed has expired");
  });

  test("has a block, whose search leads to the site's own checkout with verified prices", async () => {
    const checkout = site.page("Pay", "[own_checkout]");
    const admin = await administrator();
    await admin.goto(SETTINGS);
    await admin.getByLabel("Confirmed carts go to").selectOption({ label: "Pay" });
    await admin.getByRole("button", { name: "Save Changes" }).click();
    await admin.locator(".settings-error").waitFor();

    await admin.goto("/wp-admin/post-new.php?post_type=page");
    // What it says to new users.
    await admin
      .getByRole("dialog")
      .getByRole("button", { name: /^Close/ })
      .click();
    await admin.getByLabel("Add title").fill("Find your name");
    await admin.keyboard.press("Enter");
    await admin.keyboard.type("/.af domain");
    await admin.getByRole("option", { name: ".af domain search" }).click();
    await admin.getByText("The search box appears on the page.").first().waitFor();
    await admin.getByLabel("Endings, such as .af,.com.af").fill(".af,.com.af");
    await admin.getByRole("button", { name: "Publish", exact: true }).click();
    await admin.getByLabel("Editor publish").getByRole("button", { name: "Publish", exact: true }).click();
    await admin.getByText("is now live").waitFor();

    const page = await visitor();
    await page.goto("/?pagename=find-your-name");
    expect(await attributesOf(page)).toEqual({ lang: "en", tlds: ".af,.com.af", checkout });
    await order(page, "kabul.af");
    await page.getByRole("heading", { name: "Pay" }).waitFor();
    expect(await page.locator("#lines li").allTextContents()).toEqual(["kabul.af 26.99 USD"]);
    await page.goto(checkout);
    await page.getByText("This cart was not signed by our shop.").waitFor();
  });

  test("has a shortcode, with attributes that can't break out of the page", async () => {
    const address = site.page(
      "Names",
      `[af_domain_search lang="fa" years="2" q="kabul"]
       [af_domain_search tlds="&quot;><b id=evil>" checkout="javascript:alert(1)" onclick="alert(1)"]`,
    );
    const page = await visitor();
    await page.goto(address);
    await page.locator("af-domain-search").first().getByText("kabul.af", { exact: true }).first().waitFor();
    const [first, second] = await page
      .locator("af-domain-search")
      .evaluateAll((all) => all.map((one: { outerHTML: string }) => one.outerHTML));
    expect(first).toContain('<af-domain-search lang="fa" years="2" q="kabul" checkout="http');
    expect(second).not.toMatch(/javascript:|onclick|<b/);
    expect(await page.locator("#evil").count()).toBe(0);
    expect(await page.locator(`script[src="${serviceUrl}/embed.js"]`).count()).toBe(1);
  });

  async function attributesOf(page: Page): Promise<unknown> {
    return page
      .locator("af-domain-search")
      .evaluate((element: { attributes: Iterable<{ name: string; value: string }> }) =>
        Object.fromEntries(Array.from(element.attributes, ({ name, value }) => [name, value])),
      );
  }

  describe("with WooCommerce", () => {
    beforeAll(async () => {
      site.activateWooCommerce();
      site.php(`update_option('woocommerce_currency', 'USD'); update_option('woocommerce_price_num_decimals', '2');
        update_option('af_domain_search', ['checkout' => 0] + get_option('af_domain_search'));`);
    });

    async function promise(...domains: string[]): Promise<string> {
      const items = domains.map((domain) => ({ domain, action: "registration", years: 1 }));
      const { body } = await service.ask("/v1/quotes", { method: "POST", body: { items } });
      return z.object({ promise: z.string() }).parse(body).promise;
    }

    /** Runs PHP with the functions of the scenes below and returns what it puts into $said. */
    async function scene(code: string): Promise<unknown> {
      const output = site.php(`
        $said = [];
        function lines() {
          return array_values(array_map(fn ($item) => $item['data']->get_name() . ' ' . $item['data']->get_price(), WC()->cart->get_cart()));
        }
        function notices() {
          $texts = array_column(wc_get_notices('error'), 'notice'); wc_clear_notices(); return $texts;
        }
        /** The order of the cart, saved and not yet accepted. */
        function order() {
          return wc_get_order(WC()->checkout()->create_order(['billing_email' => 'visitor@example.af', 'payment_method' => '']));
        }
        /** Goes on to the payment as WooCommerce does; the sentence that it shows instead if something refuses. */
        function accept($order) {
          try { do_action('woocommerce_checkout_order_processed', $order->get_id(), [], $order); return 'accepted'; }
          catch (Exception $error) { return $error->getMessage(); }
        }
        function fill($promise) {
          $filled = af_domain_search_fill_cart($promise); return is_wp_error($filled) ? $filled->get_error_code() : $filled;
        }
        ${code}
        echo "\\n", json_encode($said);`);
      return JSON.parse(output.slice(output.lastIndexOf("\n")));
    }

    test("a confirmed cart becomes lines at exactly the signed prices, and an order once", async () => {
      const cart = await promise("kabul.af", "kabul.com.af");
      const said = await scene(`
        $said[] = fill('${cart}'); $said[] = lines();
        WC()->cart->get_cart_from_session(); $said[] = lines();
        $said[] = fill('${cart}'); $said[] = lines();
        $first = order(); $second = order();
        $said[] = accept($first); $said[] = accept($second); $said[] = accept($first);
        $said[] = [$first->get_total(), $first->get_status(), $second->get_status()];
        $said[] = array_values(array_map(fn ($item) => $item->get_name(), $first->get_items()));
        $said[] = lines();
        $said[] = fill('${cart}'); $said[] = lines();`);
      const names = ["kabul.af (registration, 1 year)", "kabul.com.af (registration, 1 year)"];
      const lines = [`${names[0]} 26.99`, `${names[1]} 11.99`];
      const refused =
        "The prices of your domain names are no longer held. Please search again and confirm them.";
      expect(said).toEqual([
        true,
        lines,
        lines,
        true,
        lines,
        "accepted",
        refused,
        "accepted",
        ["38.98", "pending", "cancelled"],
        names,
        [],
        "af_promise_used",
        [],
      ]);
    });

    test("lines show names in their own script", async () => {
      const said = await scene(`fill('${await promise("مزار۱۲.af")}'); $said[] = lines();`);
      expect(said).toEqual([["مزار۱۲.af (registration, 1 year) 26.99"]]);
    });

    test("lines leave the cart when their promise expires, and can't be ordered then", async () => {
      const said = await scene(`
        $promise = '${await promise("herat.af")}'; fill($promise);
        $cart = WC()->session->get('cart');
        foreach ($cart as $key => $item) $cart[$key]['af_domain_search']['valid_until'] = time();
        WC()->session->set('cart', $cart); WC()->cart->set_cart_contents([]); WC()->cart->get_cart_from_session();
        $said[] = lines(); $said[] = notices();
        fill($promise); $order = order();
        foreach ($order->get_items() as $item) {
          $line = $item->get_meta('_af_domain_search'); $line['valid_until'] = time(); $item->add_meta_data('_af_domain_search', $line, true);
        }
        $said[] = accept($order); $said[] = lines();`);
      expect(said).toEqual([
        [],
        [
          "The price of herat.af is no longer held, so it was removed from your cart. Please search for it again.",
        ],
        "The prices of your domain names are no longer held. Please search again and confirm them.",
        [],
      ]);
    });

    test("refuses other prices, currencies that it can't charge, and names without a promise", async () => {
      const said = await scene(`
        $cart = '${await promise("paghman.af")}';
        update_option('woocommerce_currency', 'EUR'); $said[] = fill($cart); update_option('woocommerce_currency', 'USD');
        update_option('woocommerce_price_num_decimals', '0'); $said[] = fill($cart); update_option('woocommerce_price_num_decimals', '2');
        $said[] = fill($cart . 'x'); $said[] = lines();
        $said[] = WC()->cart->add_to_cart(af_domain_search_product()); $said[] = notices(); $said[] = lines();
        fill($cart); $order = order();
        foreach ($order->get_items() as $item) $item->set_subtotal(1);
        $said[] = accept($order);`);
      expect(said).toEqual([
        "af_currency",
        "af_currency",
        "af_promise_invalid",
        [],
        false,
        ["Please add domain names with the search box."],
        [],
        "The prices of your domain names are no longer held. Please search again and confirm them.",
      ]);
    });

    test("takes a visitor from the search box to its checkout", async () => {
      const address = site.page("Shop", "[af_domain_search]");
      const page = await visitor();
      await page.goto(address);
      await order(page, "istalif.af");
      await page.getByRole("heading", { name: "Checkout" }).waitFor();
      expect(await page.locator("body").textContent()).toMatch(
        /istalif\.af \(registration, 1 year\).*26\.99/s,
      );
      // The promise that the visitor confirmed, altered on the way.
      await page.setContent(
        `<form method="post" action="${site.url}/?af-domain-search=cart"><input name="promise" value="a.b.c"><button>Go</button></form>`,
      );
      await page.getByRole("button").click();
      await page.getByText("This cart was not signed by our shop.").waitFor();
    });
  });

  test("leaves nothing behind when it is deleted", async () => {
    const left = site.php(`
      require_once ABSPATH . 'wp-admin/includes/plugin.php';
      define('WP_UNINSTALL_PLUGIN', true); require WP_PLUGIN_DIR . '/af-domain-search/uninstall.php';
      global $wpdb; echo json_encode([
        $wpdb->get_col("SELECT option_name FROM $wpdb->options WHERE option_name LIKE '%af_domain_search%'"),
        $wpdb->get_col("SELECT post_title FROM $wpdb->posts WHERE post_type = 'product'")]);`);
    expect(JSON.parse(left)).toEqual([[], []]);
  });
});
