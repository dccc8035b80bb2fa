<?php
/**
 * With WooCommerce: a confirmed cart, posted to /?af-domain-search=cart, becomes lines of the WooCommerce cart at exactly the signed prices.
 * Lines leave the cart when their promise expires. One promise pays for one order.
 *
 * All lines are of one hidden product. A cart item has its line, with the promise's id and expiry, under `af_domain_search`; so has an order item
 * in its meta data `_af_domain_search`.
 */

defined( 'ABSPATH' ) || exit;

add_action( 'wp_loaded', 'af_domain_search_receive_cart', 20 );

function af_domain_search_receive_cart(): void {
	// Without a nonce, like WooCommerce's own links that add to a cart: only what the service signed is added, and nothing is ordered.
	// phpcs:disable WordPress.Security.NonceVerification
	if ( ! isset( $_GET['af-domain-search'], $_POST['promise'] ) || ! function_exists( 'WC' ) || ! WC()->cart ) {
		return;
	}
	$added = af_domain_search_fill_cart( sanitize_text_field( wp_unslash( $_POST['promise'] ) ) );
	// phpcs:enable
	if ( is_wp_error( $added ) ) {
		// A visitor with an empty cart has no session yet that could keep the sentence until the next page.
		WC()->session->set_customer_session_cookie( true );
		wc_add_notice( $added->get_error_message(), 'error' );
	}
	nocache_headers();
	wp_safe_redirect( is_wp_error( $added ) ? wc_get_cart_url() : wc_get_checkout_url() );
	exit;
}

/**
 * Replaces the domain names in the cart by those of a promise.
 *
 * @return true|WP_Error With a sentence for the visitor; then the cart is as it was.
 */
function af_domain_search_fill_cart( string $jws ) {
	$promise = af_domain_search_verify_promise( $jws );
	if ( is_wp_error( $promise ) ) {
		return $promise;
	}
	if ( null !== af_domain_search_order_of( $promise['id'] ) ) {
		return new WP_Error( 'af_promise_used', __( 'This cart has already been ordered. To order more, search again and confirm the price.', 'af-domain-search' ) );
	}
	foreach ( $promise['lines'] as $line ) {
		// WooCommerce would show another currency, or round.
		list( , $fraction ) = explode( '.', $line['price']['amount'] ) + array( '', '' );
		if ( get_woocommerce_currency() !== $line['price']['currency'] || strlen( rtrim( $fraction, '0' ) ) > wc_get_price_decimals() ) {
			return new WP_Error( 'af_currency', __( 'This shop can’t charge the currency of these prices. Please tell us about it.', 'af-domain-search' ) );
		}
	}
	af_domain_search_clear_cart();
	$product = af_domain_search_product();
	foreach ( $promise['lines'] as $line ) {
		$line += array( 'promise' => $promise['id'], 'valid_until' => $promise['valid_until'] );
		WC()->cart->add_to_cart( $product, 1, 0, array(), array( 'af_domain_search' => $line ) );
	}
	return true;
}

function af_domain_search_clear_cart(): void {
	foreach ( WC()->cart->get_cart() as $key => $item ) {
		if ( af_domain_search_is_line( $item['product_id'] ) ) {
			WC()->cart->remove_cart_item( $key );
		}
	}
}

/** The id of the product that all lines are of. It is created when it is first needed, and again if somebody deleted it. */
function af_domain_search_product(): int {
	$id      = (int) get_option( 'af_domain_search_product' );
	$product = $id > 0 ? wc_get_product( $id ) : null;
	if ( $product && 'publish' === $product->get_status() ) {
		return $id;
	}
	$product = new WC_Product_Simple();
	$product->set_name( __( 'Domain name', 'af-domain-search' ) );
	$product->set_catalog_visibility( 'hidden' );
	$product->set_virtual( true );
	$product->set_sold_individually( true );
	// The signed price is what the visitor pays.
	$product->set_tax_status( 'none' );
	$product->set_regular_price( '0' );
	$id = $product->save();
	update_option( 'af_domain_search_product', $id, false );
	return $id;
}

function af_domain_search_is_line( $product_id ): bool {
	return (int) $product_id > 0 && (int) get_option( 'af_domain_search_product' ) === (int) $product_id;
}

// Whatever adds the product to a cart, only a promised line gets in.
add_filter(
	'woocommerce_add_cart_item',
	function ( $item ) {
		if ( af_domain_search_is_line( $item['product_id'] ) && ! isset( $item['af_domain_search'] ) ) {
			throw new Exception( esc_html__( 'Please add domain names with the search box.', 'af-domain-search' ) );
		}
		return af_domain_search_priced( $item );
	}
);

add_filter( 'woocommerce_get_cart_item_from_session', 'af_domain_search_priced' );

/** A cart item with the name and the price of its line, if it has one. */
function af_domain_search_priced( $item ) {
	if ( isset( $item['af_domain_search'] ) ) {
		$item['data']->set_name( af_domain_search_line_name( $item['af_domain_search'] ) );
		$item['data']->set_price( $item['af_domain_search']['price']['amount'] );
	}
	return $item;
}

function af_domain_search_line_name( array $line ): string {
	$actions = array(
		'registration' => __( 'registration', 'af-domain-search' ),
		'renewal'      => __( 'renewal', 'af-domain-search' ),
		'transfer'     => __( 'transfer', 'af-domain-search' ),
		'restore'      => __( 'restore', 'af-domain-search' ),
	);
	/* translators: 1: domain name, 2: registration, renewal, transfer or restore, 3: number of years */
	$form = _n( '%1$s (%2$s, %3$d year)', '%1$s (%2$s, %3$d years)', $line['years'], 'af-domain-search' );
	// In its own script, where PHP has the extension intl.
	$name = function_exists( 'idn_to_utf8' ) ? idn_to_utf8( $line['domain'] ) : false;
	return sprintf( $form, false === $name ? $line['domain'] : $name, $actions[ $line['action'] ] ?? $line['action'], $line['years'] );
}

add_filter(
	'woocommerce_get_item_data',
	function ( $data, $item ) {
		if ( isset( $item['af_domain_search'] ) ) {
			$until  = wp_date( get_option( 'time_format' ), $item['af_domain_search']['valid_until'] );
			$data[] = array( 'key' => __( 'Price held until', 'af-domain-search' ), 'value' => $until );
		}
		return $data;
	},
	10,
	2
);

// Every request loads the cart, the one that orders too.
add_filter(
	'woocommerce_pre_remove_cart_item_from_session',
	function ( $is_removed, $key, $item ) {
		if ( ! af_domain_search_is_line( $item['product_id'] ) || ( $item['af_domain_search']['valid_until'] ?? 0 ) > time() ) {
			return $is_removed;
		}
		/* translators: %s: domain name */
		$sentence = __( 'The price of %s is no longer held, so it was removed from your cart. Please search for it again.', 'af-domain-search' );
		wc_add_notice( esc_html( sprintf( $sentence, $item['af_domain_search']['domain'] ?? __( 'a domain name', 'af-domain-search' ) ) ), 'error' );
		return true;
	},
	10,
	3
);

add_action(
	'woocommerce_checkout_create_order_line_item',
	function ( $order_item, $key, $item ) {
		if ( isset( $item['af_domain_search'] ) ) {
			$order_item->add_meta_data( '_af_domain_search', $item['af_domain_search'], true );
		}
	},
	10,
	3
);

// Both happen when the order is saved, before it is paid: the classic checkout and the block.
add_action(
	'woocommerce_checkout_order_processed',
	function ( $order_id, $posted, $order ) {
		af_domain_search_accept_order( $order );
	},
	10,
	3
);
add_action( 'woocommerce_store_api_checkout_order_processed', 'af_domain_search_accept_order' );

/**
 * Accepts an order whose domain names have the signed price, of a valid promise that no other order has used. Cancels any other order, and removes its domain names from the cart.
 *
 * @throws Exception With a sentence for the visitor, which WooCommerce shows instead of going on to the payment.
 */
function af_domain_search_accept_order( $order ): void {
	foreach ( $order->get_items() as $item ) {
		if ( ! af_domain_search_is_line( $item->get_product_id() ) ) {
			continue;
		}
		$line     = $item->get_meta( '_af_domain_search' );
		$decimals = wc_get_price_decimals();
		if ( ! is_array( $line ) || $line['valid_until'] <= time()
			|| wc_format_decimal( $item->get_subtotal(), $decimals ) !== wc_format_decimal( $line['price']['amount'], $decimals )
			|| af_domain_search_order_of( $line['promise'], $order->get_id(), $line['valid_until'] ) !== $order->get_id() ) {
			$order->update_status( 'cancelled', __( 'The price of a domain name was not held for this order.', 'af-domain-search' ) );
			af_domain_search_clear_cart();
			throw new Exception( esc_html__( 'The prices of your domain names are no longer held. Please search again and confirm them.', 'af-domain-search' ) );
		}
	}
}

/** The order that used a promise; if none did and an order is given, that is it from now on, and otherwise null. */
function af_domain_search_order_of( string $promise, int $order = 0, int $valid_until = 0 ): ?int {
	global $wpdb;
	$name = "af_domain_search_used_$promise";
	if ( $order > 0 ) {
		// One statement, because add_option() looks first, and two orders could look at the same time. Expired ones can't be used again.
		$wpdb->query( $wpdb->prepare( "INSERT IGNORE INTO $wpdb->options (option_name, option_value, autoload) VALUES (%s, %s, 'no')", $name, "$valid_until $order" ) );
		$used = $wpdb->esc_like( 'af_domain_search_used_' ) . '%';
		$wpdb->query( $wpdb->prepare( "DELETE FROM $wpdb->options WHERE option_name LIKE %s AND option_value < %s", $used, (string) ( time() - DAY_IN_SECONDS ) ) );
	}
	$used = $wpdb->get_var( $wpdb->prepare( "SELECT option_value FROM $wpdb->options WHERE option_name = %s", $name ) );
	return null === $used ? null : (int) substr( strrchr( $used, ' ' ), 1 );
}

// Orders are read and written through WooCommerce alone, wherever it keeps them.
add_action(
	'before_woocommerce_init',
	function () {
		if ( class_exists( '\Automattic\WooCommerce\Utilities\FeaturesUtil' ) ) {
			foreach ( array( 'custom_order_tables', 'cart_checkout_blocks' ) as $feature ) {
				\Automattic\WooCommerce\Utilities\FeaturesUtil::declare_compatibility( $feature, __DIR__ . '/af-domain-search.php', true );
			}
		}
	}
);
