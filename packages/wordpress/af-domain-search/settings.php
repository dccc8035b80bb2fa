<?php
/** The page Settings → .af domain search, with a check of the connection to the service. */

defined( 'ABSPATH' ) || exit;

add_action(
	'admin_menu',
	function () {
		$title = __( '.af domain search', 'af-domain-search' );
		add_options_page( $title, $title, 'manage_options', 'af-domain-search', 'af_domain_search_settings_page' );
	}
);

add_action(
	'admin_init',
	function () {
		register_setting( 'af_domain_search', 'af_domain_search', array( 'sanitize_callback' => 'af_domain_search_sanitize' ) );
	}
);

/** The submitted settings; an address that can't be used leaves the former one, and a sentence says why. */
function af_domain_search_sanitize( $submitted ): array {
	$submitted = is_array( $submitted ) ? $submitted : array();
	$service   = untrailingslashit( esc_url_raw( trim( (string) ( $submitted['service'] ?? '' ) ), array( 'http', 'https' ) ) );
	$is_local  = in_array( wp_parse_url( $service, PHP_URL_HOST ), array( 'localhost', '127.0.0.1', '[::1]' ), true );
	// Whoever can change the keys on the way can sign any price.
	if ( '' !== $service && 'https' !== wp_parse_url( $service, PHP_URL_SCHEME ) && ! $is_local ) {
		add_settings_error( 'af_domain_search', 'service', __( 'The address of the service must start with https://.', 'af-domain-search' ) );
		$service = af_domain_search_settings()['service'];
	}
	if ( af_domain_search_settings()['service'] !== $service ) {
		delete_transient( AF_DOMAIN_SEARCH_KEYS );
	}
	$lang = (string) ( $submitted['lang'] ?? '' );
	return array(
		'service'  => $service,
		'lang'     => in_array( $lang, array( 'en', 'fa', 'ps' ), true ) ? $lang : '',
		'checkout' => absint( $submitted['checkout'] ?? 0 ),
	);
}

function af_domain_search_settings_page(): void {
	if ( ! current_user_can( 'manage_options' ) ) {
		return;
	}
	$settings  = af_domain_search_settings();
	$page      = admin_url( 'options-general.php?page=af-domain-search' );
	$languages = array( '' => __( 'The language of the site', 'af-domain-search' ), 'en' => 'English', 'fa' => 'دری', 'ps' => 'پښتو' );
	$nothing   = function_exists( 'WC' ) ? __( 'The WooCommerce cart', 'af-domain-search' ) : __( 'None', 'af-domain-search' );
	?>
	<div class="wrap">
		<h1><?php echo esc_html( get_admin_page_title() ); ?></h1>
		<form method="post" action="options.php">
			<?php settings_fields( 'af_domain_search' ); ?>
			<table class="form-table" role="presentation">
				<tr>
					<th scope="row"><label for="af-service"><?php esc_html_e( 'Address of the service', 'af-domain-search' ); ?></label></th>
					<td><input id="af-service" name="af_domain_search[service]" type="url" class="regular-text code" placeholder="https://names.example.af" value="<?php echo esc_attr( $settings['service'] ); ?>" /></td>
				</tr>
				<tr>
					<th scope="row"><label for="af-lang"><?php esc_html_e( 'Language', 'af-domain-search' ); ?></label></th>
					<td><select id="af-lang" name="af_domain_search[lang]">
						<?php foreach ( $languages as $code => $name ) : ?>
							<option value="<?php echo esc_attr( $code ); ?>" <?php selected( $settings['lang'], $code ); ?>><?php echo esc_html( $name ); ?></option>
						<?php endforeach; ?>
					</select></td>
				</tr>
				<tr>
					<th scope="row"><label for="af-checkout"><?php esc_html_e( 'Confirmed carts go to', 'af-domain-search' ); ?></label></th>
					<td><?php
						wp_dropdown_pages(
							array(
								'id'                => 'af-checkout',
								'name'              => 'af_domain_search[checkout]',
								'selected'          => (int) $settings['checkout'],
								'show_option_none'  => esc_html( $nothing ),
								'option_none_value' => '0',
							)
						);
					?></td>
				</tr>
			</table>
			<?php submit_button(); ?>
		</form>
		<h2><?php esc_html_e( 'Connection', 'af-domain-search' ); ?></h2>
		<p><a class="button" href="<?php echo esc_url( wp_nonce_url( "$page&check=1", 'af_domain_search_check' ) ); ?>"><?php esc_html_e( 'Check the connection', 'af-domain-search' ); ?></a></p>
		<?php if ( isset( $_GET['check'] ) && check_admin_referer( 'af_domain_search_check' ) ) : ?>
			<?php foreach ( af_domain_search_check( $settings['service'] ) as $finding ) : ?>
				<div class="notice inline <?php echo $finding['ok'] ? 'notice-success' : 'notice-error'; ?>"><p><?php echo esc_html( $finding['text'] ); ?></p></div>
			<?php endforeach; ?>
		<?php endif; ?>
	</div>
	<?php
}

/**
 * Asks the service what the search box and the checkout need of it.
 *
 * @return array<array{ok: bool, text: string}> Sentences for the administrator.
 */
function af_domain_search_check( string $service ): array {
	$home   = wp_parse_url( home_url() );
	$origin = $home['scheme'] . '://' . $home['host'] . ( isset( $home['port'] ) ? ':' . $home['port'] : '' );
	$ask    = function ( string $path ) use ( $service, $origin ) {
		return wp_remote_get( $service . $path, array( 'timeout' => 5, 'redirection' => 0, 'headers' => array( 'Origin' => $origin ) ) );
	};
	$health = $ask( '/health' );
	$state  = json_decode( wp_remote_retrieve_body( $health ), true );
	if ( ! isset( $state['status'], $state['version'] ) ) {
		/* translators: %s: a technical reason */
		$text   = __( 'The service can’t be reached at this address: %s', 'af-domain-search' );
		$reason = is_wp_error( $health ) ? $health->get_error_message() : 'HTTP ' . wp_remote_retrieve_response_code( $health );
		return array( array( 'ok' => false, 'text' => sprintf( $text, $reason ) ) );
	}
	$keys     = $ask( '/.well-known/jwks.json' );
	$set      = json_decode( wp_remote_retrieve_body( $keys ), true );
	$allowed  = in_array( wp_remote_retrieve_header( $keys, 'access-control-allow-origin' ), array( $origin, '*' ), true );
	$is_there = 200 === wp_remote_retrieve_response_code( $ask( '/embed.js' ) );
	return array(
		array(
			'ok'   => 'fail' !== $state['status'],
			/* translators: 1: version, 2: pass, warn or fail */
			'text' => sprintf( __( 'The service answers. Version %1$s, health: %2$s.', 'af-domain-search' ), $state['version'], $state['status'] ),
		),
		array(
			'ok'   => $allowed,
			'text' => sprintf(
				/* translators: %s: this site's origin, such as https://www.example.af */
				$allowed ? __( 'It accepts searches from %s.', 'af-domain-search' ) : __( 'It doesn’t accept searches from this site. Add %s to its setting CORS_ORIGINS.', 'af-domain-search' ),
				$origin
			),
		),
		array(
			'ok'   => $is_there,
			'text' => $is_there ? __( 'It serves the search box.', 'af-domain-search' ) : __( 'It doesn’t serve the search box: is it older than this plugin, or EMBED=off?', 'af-domain-search' ),
		),
		array(
			'ok'   => ! empty( $set['keys'] ),
			'text' => ! empty( $set['keys'] ) ? __( 'It signs confirmed carts.', 'af-domain-search' ) : __( 'It doesn’t sign carts: it needs the setting PROMISE_PRIVATE_KEY.', 'af-domain-search' ),
		),
	);
}
