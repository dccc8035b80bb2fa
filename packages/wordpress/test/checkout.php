<?php
/**
 * A checkout without WordPress: the functions of WordPress that promise.php uses, and a loop that reads commands and prints what comes of them as
 * JSON. `verify PROMISE` verifies one; `pass SECONDS` makes what is stored that much older. Arguments: the service's address.
 */

define( 'ABSPATH', '/' );
define( 'MINUTE_IN_SECONDS', 60 );
define( 'HOUR_IN_SECONDS', 3600 );

class WP_Error {
	public $code;
	public function __construct( $code ) {
		$this->code = $code;
	}
}

$stored = array();
$asked  = 0;

function is_wp_error( $thing ) {
	return $thing instanceof WP_Error;
}
function __( $text ) {
	return $text;
}
function get_transient( $name ) {
	return $GLOBALS['stored'][ $name ] ?? false;
}
function set_transient( $name, $value ) {
	$GLOBALS['stored'][ $name ] = $value;
}
function af_domain_search_settings() {
	return array( 'service' => $GLOBALS['argv'][1] );
}
function wp_remote_get( $url ) {
	++$GLOBALS['asked'];
	$body = @file_get_contents( $url );
	return false === $body ? new WP_Error( 'http_request_failed' ) : $body;
}
function wp_remote_retrieve_response_code( $answer ) {
	return is_wp_error( $answer ) ? '' : 200;
}
function wp_remote_retrieve_body( $answer ) {
	return is_wp_error( $answer ) ? '' : $answer;
}

error_reporting( E_ALL );
set_error_handler(
	function ( $level, $message ) {
		// Not where it was silenced with @.
		if ( error_reporting() & $level ) {
			throw new ErrorException( $message );
		}
	}
);

require __DIR__ . '/../af-domain-search/promise.php';

while ( false !== ( $command = fgets( STDIN ) ) ) {
	list( $act, $what ) = explode( ' ', rtrim( $command, "\n" ), 2 );
	if ( 'pass' === $act ) {
		foreach ( $stored as $name => $value ) {
			$stored[ $name ]['asked_at'] -= (int) $what;
			$stored[ $name ]['read_at']  -= (int) $what;
		}
		continue;
	}
	$promise = af_domain_search_verify_promise( $what );
	echo json_encode( array( 'promise' => is_wp_error( $promise ) ? $promise->code : $promise, 'asked' => $asked ) ), "\n";
}
