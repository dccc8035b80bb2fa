<?php
/** Removes everything that the plugin stored. Orders keep their lines. */

defined( 'WP_UNINSTALL_PLUGIN' ) || exit;

wp_delete_post( (int) get_option( 'af_domain_search_product' ), true );
delete_option( 'af_domain_search_product' );
delete_option( 'af_domain_search' );
delete_transient( 'af_domain_search_keys' );

global $wpdb;
$wpdb->query( $wpdb->prepare( "DELETE FROM $wpdb->options WHERE option_name LIKE %s", $wpdb->esc_like( 'af_domain_search_used_' ) . '%' ) );
