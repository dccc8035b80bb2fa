<?php
/**
 * Plugin Name: The part of WooCommerce that the plugin uses
 *
 * An imitation for tests, where WooCommerce can't be installed: the same functions, and the same hooks at the same moments. Prices are floats,
 * as in WooCommerce.
 */

class WC_Product_Simple {
	private $id;
	private $props = array( 'name' => '', 'price' => '', 'regular_price' => '', 'status' => 'publish' );

	public function __construct( $id = 0 ) {
		$this->id = $id;
		if ( $id ) {
			$this->props           = get_post_meta( $id, 'props', true );
			$this->props['status'] = get_post_status( $id );
		}
	}
	public function __call( $name, $arguments ) {
		list( $verb, $prop ) = explode( '_', $name, 2 );
		if ( 'get' === $verb ) {
			return $this->props[ $prop ];
		}
		$this->props[ $prop ] = $arguments[0];
		if ( 'regular_price' === $prop ) {
			$this->props['price'] = $arguments[0];
		}
	}
	public function save() {
		$this->id = wp_insert_post( array( 'post_title' => $this->props['name'], 'post_type' => 'product', 'post_status' => 'publish' ) );
		update_post_meta( $this->id, 'props', $this->props );
		return $this->id;
	}
}

class Imitated_Session {
	public $id;
	public $data;

	public function __construct() {
		$this->id   = $_COOKIE['imitated_session'] ?? wp_generate_uuid4();
		$this->data = get_transient( "imitated_session_$this->id" ) ?: array( 'cart' => array(), 'notices' => array() );
	}
	public function set_customer_session_cookie() {
		if ( 'cli' !== PHP_SAPI ) {
			setcookie( 'imitated_session', $this->id, 0, '/' );
		}
	}
	public function get( $name ) {
		return $this->data[ $name ];
	}
	public function set( $name, $value ) {
		$this->data[ $name ] = $value;
	}
	public function save() {
		set_transient( "imitated_session_$this->id", $this->data );
	}
}

class Imitated_Cart {
	private $items = array();

	public function set_cart_contents( $items ) {
		$this->items = $items;
	}
	public function get_cart_from_session() {
		foreach ( WC()->session->data['cart'] as $key => $values ) {
			$product = wc_get_product( $values['product_id'] );
			if ( ! apply_filters( 'woocommerce_pre_remove_cart_item_from_session', false, $key, $values, $product ) ) {
				$this->items[ $key ] = apply_filters( 'woocommerce_get_cart_item_from_session', array( 'data' => $product ) + $values, $values, $key );
			}
		}
		$this->keep();
	}
	public function get_cart() {
		return $this->items;
	}
	public function add_to_cart( $product_id, $quantity = 1, $variation_id = 0, $variation = array(), $data = array() ) {
		$key = md5( serialize( array( $product_id, $data ) ) );
		try {
			$item                = $data + array( 'product_id' => $product_id, 'quantity' => $quantity, 'data' => wc_get_product( $product_id ) );
			$this->items[ $key ] = apply_filters( 'woocommerce_add_cart_item', $item, $key );
		} catch ( Exception $error ) {
			wc_add_notice( $error->getMessage(), 'error' );
			return false;
		}
		WC()->session->set_customer_session_cookie();
		$this->keep();
		return $key;
	}
	public function remove_cart_item( $key ) {
		unset( $this->items[ $key ] );
		$this->keep();
	}
	public function get_total() {
		return wc_format_decimal( array_sum( array_map( function ( $item ) {
			return (float) $item['data']->get_price();
		}, $this->items ) ), 2 );
	}
	private function keep() {
		WC()->session->data['cart'] = array_map( function ( $item ) {
			return array_diff_key( $item, array( 'data' => 0 ) );
		}, $this->items );
	}
}

class Imitated_Item {
	public $product_id;
	public $name;
	public $subtotal;
	private $meta = array();

	public function get_product_id() {
		return $this->product_id;
	}
	public function get_name() {
		return $this->name;
	}
	public function get_subtotal() {
		return $this->subtotal;
	}
	public function set_subtotal( $subtotal ) {
		$this->subtotal = $subtotal;
	}
	public function get_meta( $key ) {
		return $this->meta[ $key ] ?? '';
	}
	public function add_meta_data( $key, $value ) {
		$this->meta[ $key ] = $value;
	}
}

class Imitated_Order {
	public static $all = array();
	public $items      = array();
	private $id;
	private $status = 'pending';

	public function __construct() {
		$this->id               = wp_insert_post( array( 'post_title' => 'Order', 'post_type' => 'shop_order', 'post_status' => 'publish' ) );
		self::$all[ $this->id ] = $this;
	}
	public function get_id() {
		return $this->id;
	}
	public function get_items() {
		return $this->items;
	}
	public function get_status() {
		return $this->status;
	}
	public function get_total() {
		return wc_format_decimal( array_sum( array_column( $this->items, 'subtotal' ) ), 2 );
	}
	public function update_status( $status ) {
		$this->status = $status;
	}
}

class Imitated_Checkout {
	public function create_order() {
		$order = new Imitated_Order();
		foreach ( WC()->cart->get_cart() as $key => $values ) {
			$item             = new Imitated_Item();
			$item->product_id = $values['product_id'];
			$item->name       = $values['data']->get_name();
			$item->subtotal   = (float) $values['data']->get_price();
			do_action( 'woocommerce_checkout_create_order_line_item', $item, $key, $values, $order );
			$order->items[] = $item;
		}
		return $order->get_id();
	}
}

class WooCommerce {
	public $cart;
	public $session;

	public function checkout() {
		return new Imitated_Checkout();
	}
}

function WC() {
	static $instance;
	return $instance = $instance ?? new WooCommerce();
}
function wc_get_product( $id ) {
	return get_post( $id ) ? new WC_Product_Simple( $id ) : false;
}
function wc_get_order( $id ) {
	return Imitated_Order::$all[ $id ];
}
function wc_get_price_decimals() {
	return (int) get_option( 'woocommerce_price_num_decimals', 2 );
}
function get_woocommerce_currency() {
	return get_option( 'woocommerce_currency' );
}
function wc_format_decimal( $number, $decimals ) {
	return number_format( (float) $number, $decimals, '.', '' );
}
function wc_add_notice( $text, $kind ) {
	WC()->session->data['notices'][ $kind ][] = array( 'notice' => $text );
}
function wc_get_notices( $kind ) {
	return WC()->session->data['notices'][ $kind ] ?? array();
}
function wc_clear_notices() {
	WC()->session->data['notices'] = array();
}
function wc_get_cart_url() {
	return home_url( '/?imitated=cart' );
}
function wc_get_checkout_url() {
	return home_url( '/?imitated=checkout' );
}

add_action(
	'init',
	function () {
		register_post_type( 'product' );
		register_post_type( 'shop_order' );
		WC()->session = new Imitated_Session();
		WC()->cart    = new Imitated_Cart();
		if ( isset( $_GET['add-to-cart'] ) ) {
			add_action( 'wp_loaded', function () {
				WC()->cart->add_to_cart( (int) $_GET['add-to-cart'] );
			}, 20 );
		}
	}
);
add_action( 'wp_loaded', function () {
	WC()->cart->get_cart_from_session();
} );
add_action( 'shutdown', function () {
	// Not in the request that activates it.
	if ( WC()->session ) {
		WC()->session->save();
	}
} );
add_action(
	'template_redirect',
	function () {
		if ( ! isset( $_GET['imitated'] ) ) {
			return;
		}
		echo '<!doctype html><title>Checkout</title><h1>Checkout</h1>';
		foreach ( wc_get_notices( 'error' ) as $notice ) {
			printf( '<p role="alert">%s</p>', esc_html( $notice['notice'] ) );
		}
		wc_clear_notices();
		foreach ( WC()->cart->get_cart() as $item ) {
			$more = implode( ' ', wp_list_pluck( apply_filters( 'woocommerce_get_item_data', array(), $item ), 'key' ) );
			printf( '<p>%s %s %s</p>', esc_html( $item['data']->get_name() ), esc_html( $item['data']->get_price() ), esc_html( $more ) );
		}
		exit;
	}
);
