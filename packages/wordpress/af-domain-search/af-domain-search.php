<?php
/**
 * Plugin Name: .af domain search
 * Description: A search box for .af domain names with your prices, as a block and a shortcode. Verifies signed carts, and makes them WooCommerce orders.
 * Version: 0.1.0
 * Requires at least: 5.8
 * Requires PHP: 7.4
 * License: UNLICENSED
 * Text Domain: af-domain-search
 *
 * This file prints the search box. promise.php verifies signed carts, woocommerce.php sells them, settings.php is the settings page.
 */

defined( 'ABSPATH' ) || exit;

require __DIR__ . '/promise.php';
require __DIR__ . '/woocommerce.php';
if ( is_admin() ) {
	require __DIR__ . '/settings.php';
}

/** The settings, or their defaults: the service's address without a final slash, a language or '', and the id of the checkout page or 0. */
function af_domain_search_settings(): array {
	$saved = get_option( 'af_domain_search' );
	return wp_parse_args( is_array( $saved ) ? $saved : array(), array( 'service' => '', 'lang' => '', 'checkout' => 0 ) );
}

add_action(
	'init',
	function () {
		$editor = array( 'wp-block-editor', 'wp-blocks', 'wp-components', 'wp-element', 'wp-i18n' );
		wp_register_script( 'af-domain-search-block', plugins_url( 'block.js', __FILE__ ), $editor, '0.1.0', true );
		register_block_type( __DIR__, array( 'render_callback' => 'af_domain_search_render' ) );
		add_shortcode( 'af_domain_search', 'af_domain_search_render' );
	}
);

/**
 * The HTML of a search box, whose script is then loaded too.
 *
 * @param array|string $given The attributes of the block or the shortcode. What is empty comes from the settings, or is left to the element.
 */
function af_domain_search_render( $given ): string {
	$settings = af_domain_search_settings();
	if ( '' === $settings['service'] ) {
		$missing = __( 'Enter the address of the service under Settings → .af domain search.', 'af-domain-search' );
		return current_user_can( 'manage_options' ) ? '<p>' . esc_html( $missing ) . '</p>' : '';
	}
	$none       = array( 'lang' => '', 'tlds' => '', 'years' => '', 'q' => '', 'checkout' => '' );
	$attributes = array_map( 'strval', shortcode_atts( $none, $given, 'af_domain_search' ) );
	if ( '' === $attributes['lang'] ) {
		$attributes['lang'] = '' === $settings['lang'] ? af_domain_search_language( get_locale() ) : $settings['lang'];
	}
	$checkout               = '' === $attributes['checkout'] ? af_domain_search_checkout_url() : $attributes['checkout'];
	$attributes['checkout'] = esc_url_raw( $checkout, array( 'http', 'https' ) );

	af_domain_search_enqueue( $settings['service'] );
	$html = '';
	foreach ( array_filter( $attributes, 'strlen' ) as $name => $value ) {
		$html .= sprintf( ' %s="%s"', $name, esc_attr( $value ) );
	}
	return "<af-domain-search$html></af-domain-search>";
}

/** The element's language for a locale of WordPress. */
function af_domain_search_language( string $locale ): string {
	$language = substr( $locale, 0, 2 );
	return in_array( $language, array( 'fa', 'ps' ), true ) ? $language : 'en';
}

/** Where confirmed carts go: to the checkout page in the settings, else to WooCommerce; '' if there is neither. */
function af_domain_search_checkout_url(): string {
	$page = (int) af_domain_search_settings()['checkout'];
	if ( $page > 0 ) {
		return (string) get_permalink( $page );
	}
	return function_exists( 'WC' ) ? add_query_arg( 'af-domain-search', 'cart', home_url( '/' ) ) : '';
}

function af_domain_search_enqueue( string $service ): void {
	// Without a version: the service says itself how long its script may be cached.
	if ( function_exists( 'wp_enqueue_script_module' ) ) {
		wp_enqueue_script_module( 'af-domain-search', "$service/embed.js", array(), null );
	} else {
		wp_enqueue_script( 'af-domain-search', "$service/embed.js", array(), null, true );
	}
}

// Before WordPress 6.5 a script becomes a module only here.
add_filter(
	'script_loader_tag',
	function ( $tag, $handle, $src ) {
		return 'af-domain-search' === $handle ? wp_get_script_tag( array( 'type' => 'module', 'src' => $src ) ) : $tag;
	},
	10,
	3
);
