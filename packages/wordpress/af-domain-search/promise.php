<?php
/** Verifies signed carts, which the service calls promises, with its published keys. */

defined( 'ABSPATH' ) || exit;

const AF_DOMAIN_SEARCH_KEYS = 'af_domain_search_keys';

/**
 * What the service promised, if the promise is its own, unchanged and still valid. Prices are decimal strings: don't make them floats.
 *
 * @return array|WP_Error {
 *     @type string $id          Unique to the promise. Accept it for one order only.
 *     @type int    $valid_until Unix time.
 *     @type array  $lines       [ [ domain, tld, action, years, price: [ amount, currency ] ], … ]
 * }
 */
function af_domain_search_verify_promise( string $jws ) {
	$invalid = new WP_Error( 'af_promise_invalid', __( 'This cart was not signed by our shop. Please search again and confirm the price.', 'af-domain-search' ) );
	try {
		list( $head, $body, $signature ) = explode( '.', $jws, 3 ) + array( '', '', '' );
		$header                          = json_decode( af_domain_search_bytes( $head ), true );
		if ( ! is_string( $header['kid'] ?? null ) || 'EdDSA' !== ( $header['alg'] ?? '' ) || 'price-promise+jwt' !== ( $header['typ'] ?? '' ) ) {
			return $invalid;
		}
		$key = af_domain_search_key( $header['kid'] );
		if ( is_wp_error( $key ) ) {
			return $key;
		}
		if ( ! sodium_crypto_sign_verify_detached( af_domain_search_bytes( $signature ), "$head.$body", af_domain_search_bytes( $key ) ) ) {
			return $invalid;
		}
		$claims = json_decode( af_domain_search_bytes( $body ), true );
	} catch ( SodiumException $error ) {
		return $invalid;
	}
	if ( $claims['exp'] <= time() ) {
		return new WP_Error( 'af_promise_expired', __( 'The price of this cart is no longer held. Please confirm it again.', 'af-domain-search' ) );
	}
	return array( 'id' => $claims['jti'], 'valid_until' => $claims['exp'], 'lines' => $claims['items'] );
}

/** @throws SodiumException If it isn't base64url. */
function af_domain_search_bytes( string $text ): string {
	return sodium_base642bin( $text, SODIUM_BASE64_VARIANT_URLSAFE_NO_PADDING );
}

/**
 * The service's public key with this id, in base64url; '' if it has none. All keys are asked for again after ten minutes, or at once for an
 * unknown id, but never twice in a minute; while the service can't be reached, known keys hold for an hour.
 *
 * @return string|WP_Error An error if that can’t be found out at the moment.
 */
function af_domain_search_key( string $kid ) {
	$cached = get_transient( AF_DOMAIN_SEARCH_KEYS );
	$cached = is_array( $cached ) ? $cached : array( 'asked_at' => 0, 'read_at' => 0, 'keys' => array() );
	$is_new = false;
	$is_old = time() - $cached['read_at'] >= HOUR_IN_SECONDS;
	$rest   = isset( $cached['keys'][ $kid ] ) && ! $is_old ? 10 * MINUTE_IN_SECONDS : MINUTE_IN_SECONDS;
	if ( time() - $cached['asked_at'] >= $rest ) {
		$cached['asked_at'] = time();
		// Before the answer is here, so that requests at the same time don't ask too.
		set_transient( AF_DOMAIN_SEARCH_KEYS, $cached, HOUR_IN_SECONDS );
		$url    = af_domain_search_settings()['service'] . '/.well-known/jwks.json';
		$answer = wp_remote_get( $url, array( 'timeout' => 5, 'redirection' => 0 ) );
		$set    = 200 === wp_remote_retrieve_response_code( $answer ) ? json_decode( wp_remote_retrieve_body( $answer ), true ) : null;
		if ( is_array( $set['keys'] ?? null ) ) {
			$cached['read_at'] = time();
			$cached['keys']    = array_column( $set['keys'], 'x', 'kid' );
			$is_new            = true;
			set_transient( AF_DOMAIN_SEARCH_KEYS, $cached, HOUR_IN_SECONDS );
		}
	}
	$key = $cached['keys'][ $kid ] ?? '';
	if ( ! $is_new && ( $is_old || '' === $key ) ) {
		return new WP_Error( 'af_promise_unverified', __( 'Prices can’t be verified at the moment. Please try again in a minute.', 'af-domain-search' ) );
	}
	return $key;
}
