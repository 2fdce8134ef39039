//! The few lines of HTTP that the admin port needs.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::soon;

/// An answer of the admin port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpAnswer {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: String,
}

impl HttpAnswer {
    /// The body as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }
}

/// One request with an empty body on a connection of its own. `method` is `GET` or `POST`.
pub async fn http(at: SocketAddr, method: &str, path: &str) -> HttpAnswer {
    let answer = soon("an HTTP answer", async {
        let mut stream = TcpStream::connect(at).await?;
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {at}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await?;
        let mut answer = vec![];
        stream.read_to_end(&mut answer).await?;
        std::io::Result::Ok(String::from_utf8_lossy(&answer).into_owned())
    });
    let answer = answer
        .await
        .unwrap_or_else(|error| panic!("{method} {path} at {at}: {error}"));
    let status = answer
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    HttpAnswer {
        status: status.unwrap_or_else(|| panic!("no HTTP: {answer:?}")),
        body: body.to_owned(),
    }
}
