use super::*;

#[test]
fn with_tokens() {
    check(
        |b| {
            let [x] = parameters(b, ["f32[2]"]);
            let token = b.create_token();
            let infeed = token.infeed_with_token(shape("(f32[2], s32[])"), None);
            let token = infeed.get_tuple_element(1);
            x.outfeed_with_token(&token, shape("f32[2]{0}"), Some("to"));
        },
        "%2 = token[] after-all()
         %3 = ((f32[2], s32[]), token[]) infeed(%2)
         %4 = token[] get-tuple-element(%3), index=1
         ROOT %5 = token[] outfeed(x, %4), outfeed_shape=f32[2]{0}, outfeed_config=\"to\"",
    );
}

#[test]
fn channels() {
    let to_host = ChannelHandle { handle: 3, kind: ChannelKind::DeviceToHost };
    let from_host = ChannelHandle { handle: 4, kind: ChannelKind::HostToDevice };
    check(
        |b| {
            let [x] = parameters(b, ["f32[2]"]);
            let token = x.send_with_token(b.create_token(), ChannelHandle::new(1));
            let token = token.recv_with_token(shape("f32[]"), ChannelHandle::new(2));
            let token = x.send_to_host(token.get_tuple_element(1), to_host);
            token.recv_from_host(shape("s32[]"), from_host);
        },
        "%2 = token[] after-all()
         %3 = (f32[2], u32[], token[]) send(x, %2), channel_id=1
         %4 = token[] send-done(%3), channel_id=1
         %5 = (f32[], u32[], token[]) recv(%4), channel_id=2
         %6 = (f32[], token[]) recv-done(%5), channel_id=2
         %7 = token[] get-tuple-element(%6), index=1
         %8 = (f32[2], u32[], token[]) send(x, %7), channel_id=3, is_host_transfer=true
         %9 = token[] send-done(%8), channel_id=3, is_host_transfer=true
         %10 = (s32[], u32[], token[]) recv(%9), channel_id=4, is_host_transfer=true
         ROOT %11 = (s32[], token[]) recv-done(%10), channel_id=4, is_host_transfer=true",
    );
}

#[test]
fn the_kind_of_a_channel_is_checked() {
    let b = XlaBuilder::new("b");
    let to_host = ChannelHandle { handle: 3, kind: ChannelKind::DeviceToHost };
    b.constant_r0(1f32).send(to_host);
    let error = b.build().expect_err("a send to the host is another method").to_string();
    assert!(error.contains("DeviceToDevice is needed, found DeviceToHost"), "{error}");
}
